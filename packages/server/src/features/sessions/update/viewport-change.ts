import { configureAgent } from '@berth/contract/agent/agent-endpoints.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { AgentRefusal } from '../../../agent-link/command-agent.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import { viewportOf, windowOf } from '../machines/session-viewport.ts'
import type { Session } from '../records/session.ts'
import type { ReplayService } from '../replays/replay-service.ts'
import type { PlanChange, RestoreSession } from './session-change.ts'

/** An agent waits 15 s for a browser that is restarting. */
const resizeLimitMilliseconds = 20_000

interface ViewportChangesOptions {
  readonly machines: SessionMachines
  readonly replays: Pick<ReplayService, 'betweenSegments' | 'isRecording'>
}

/** Changes the size of a running browser without a restart. */
export class ViewportChanges {
  readonly #machines: SessionMachines
  readonly #replays: ViewportChangesOptions['replays']

  constructor({ machines, replays }: ViewportChangesOptions) {
    this.#machines = machines
    this.#replays = replays
  }

  readonly plan: PlanChange = async ({ id, gpu, viewport: before }, { viewport: asked }) => {
    if (!asked) return undefined
    const viewport = viewportOf(asked, gpu)
    if (!asked.force && this.#replays.isRecording(id)) {
      throw new BerthError('viewport_in_use', { use: 'a recording runs' })
    }
    return {
      columns: { viewport: JSON.stringify(viewport) },
      apply: () => this.#replays.betweenSegments(id, () => this.#resize(id, viewport, { force: asked.force })),
      revert: () => this.#replays.betweenSegments(id, () => this.#resize(id, before, { force: true })),
    }
  }

  readonly restore: RestoreSession = ({ id, viewport }) => this.#resize(id, viewport, { force: true, is_restore: true })

  /** The agent rejects the change while a live view is open, unless it is forced. */
  async #resize(
    id: SessionId,
    viewport: Session['viewport'],
    how: { readonly force: boolean; readonly is_restore?: boolean },
  ): Promise<void> {
    const options = { limitMilliseconds: resizeLimitMilliseconds }
    await this.#machines
      .command(id, configureAgent, { viewport: windowOf(viewport), ...how }, options)
      .catch((cause: unknown) => {
        if (!(cause instanceof AgentRefusal)) throw cause
        if (cause.code === 'viewport_in_use') throw new BerthError(cause.code, { use: 'a live view is open' })
        const reason = 'the browser did not accept the new size.'
        throw new BerthError('session_update_failed', { reason }, { cause })
      })
  }
}
