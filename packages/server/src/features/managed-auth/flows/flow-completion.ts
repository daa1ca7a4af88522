import type { ProfileId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { AuthBrowsers } from '../auth-browsers.ts'
import type { ConnectionStore, StoredConnection } from '../connection-store.ts'
import type { StoredLoginService } from '../stored-login/stored-login-service.ts'
import type { FlowSecrets } from './flow-secrets.ts'
import type { HumanNeed } from './flow-state.ts'
import type { FlowStore, StoredFlow } from './flow-store.ts'

interface FlowCompletionOptions {
  readonly store: FlowStore
  readonly connections: ConnectionStore
  readonly browsers: AuthBrowsers
  readonly secrets: FlowSecrets
  readonly storedLogins: StoredLoginService
  readonly onChange: (flow: StoredFlow) => void
  readonly clock: Clock
}

/**
 * Saves the results of a login: first the profile, then the entered values, then the facts of the connection, and
 * finally the success of the flow. A crash in between leaves a flow with its evidence, for which all steps are
 * repeated.
 */
export class FlowCompletion {
  readonly #options: FlowCompletionOptions

  constructor(options: FlowCompletionOptions) {
    this.#options = options
  }

  async complete(flow: StoredFlow, connection: StoredConnection, profileId: ProfileId): Promise<void> {
    const { store, browsers, connections, secrets, storedLogins, onChange, clock } = this.#options
    const { evidence, session_id: sessionId, post_login_url } = flow
    if (!evidence || !sessionId) return
    const isKept = await browsers.endAndKeep(sessionId, profileId, flow.created_at)
    const now = clock.now()
    if (!isKept) {
      const message = 'The login has succeeded, and its profile could not be saved.'
      const failure = { status: 'FAILED' as const, error_code: 'browser_error', error_message: message }
      const failed = await store.end(flow.id, failure, { now })
      if (failed) onChange(failed)
      return
    }
    const needs = new Set<HumanNeed>(flow.requirements)
    const isStored = await storedLogins.keep(connection, await secrets.openInputs(connection.project_id, flow))
    if (!isStored) needs.add('customer_input')
    await connections.note(connection.id, {
      status: 'AUTHENTICATED',
      authenticated_at: connection.authenticated_at ?? now,
      last_auth_check_at: now,
      post_login_url,
      evidence: JSON.stringify(evidence),
      requirements: JSON.stringify([...needs]),
      refused_credential: null,
      next_check_at: connection.health_checks ? nextCheck(connection, now) : null,
    })
    const ended = await store.end(flow.id, { status: 'SUCCESS', post_login_url }, { now })
    if (ended) onChange(ended)
  }
}

export function nextCheck(
  { health_check_interval: seconds }: Pick<StoredConnection, 'health_check_interval'>,
  now: Date,
) {
  return new Date(now.getTime() + seconds * 1000)
}
