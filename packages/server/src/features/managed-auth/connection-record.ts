import type {
  ConnectionEvent,
  CredentialReference,
  ManagedAuth,
  StateEvent,
  TimelineEvent,
} from '@berth/contract/managed-auth/connection.ts'
import type { StoredConnection } from './connection-store.ts'
import type { StoredFlow } from './flows/flow-store.ts'
import { interactionOf } from './flows/interaction.ts'
import { reauthOf } from './reauth.ts'
import type { TimelineRow } from './timeline-store.ts'

/** The addresses of a connection's flow while it is in progress. */
export interface FlowLinks {
  readonly hostedUrl: string | undefined
  readonly liveViewUrl: string | undefined
}

export function connectionRecord(
  connection: StoredConnection,
  flow: StoredFlow | undefined,
  links: FlowLinks,
): ManagedAuth {
  const reauth = reauthOf(connection)
  const { browser, last_auth_check_at: checkedAt } = connection
  const { telemetry, proxy } = browser
  const credential = credentialReference(connection)
  return {
    id: connection.id,
    profile_name: connection.profile_name,
    domain: connection.domain,
    status: connection.status,
    ...(checkedAt && { last_auth_check_at: checkedAt.toISOString(), last_auth_at: checkedAt.toISOString() }),
    ...(credential && { credential }),
    can_reauth: reauth.isPossible,
    can_reauth_reason: reauth.reason,
    ...(proxy?.id !== undefined && { proxy_id: proxy.id }),
    browser: { ...browser, stealth: browser.stealth ?? true },
    ...(telemetry !== undefined && { browser_telemetry: telemetry }),
    ...(connection.allowed_domains && { allowed_domains: [...connection.allowed_domains] }),
    ...(connection.login_url !== null && { login_url: connection.login_url }),
    ...(connection.post_login_url !== null && { post_login_url: connection.post_login_url }),
    health_check_interval: connection.health_check_interval,
    health_checks: connection.health_checks,
    ...(connection.evidence === null && { health_check_unavailable_reason: 'no_auth_check_url' }),
    auto_reauth: connection.auto_reauth,
    save_credentials: connection.save_credentials,
    record_session: connection.record_session,
    ...flowMembers(flow, links),
  }
}

function credentialReference(connection: StoredConnection): CredentialReference | undefined {
  const { credential_name, provider_name, credential_path: path, credential_auto } = connection
  if (credential_name !== null) return { name: credential_name }
  if (provider_name === null) return undefined
  return { provider: provider_name, ...(path !== null && { path }), ...(credential_auto && { auto: true }) }
}

/** The fields of the newest flow. Those that only apply while it is in progress are null afterwards. */
function flowMembers(flow: StoredFlow | undefined, { hostedUrl, liveViewUrl }: FlowLinks) {
  const asked = flow && askedOf(flow)
  const isInProgress = flow?.status === 'IN_PROGRESS'
  return {
    flow_status: flow?.status ?? null,
    flow_step: flow?.step ?? null,
    flow_type: flow?.flow_type ?? null,
    flow_expires_at: flow?.expires_at.toISOString() ?? null,
    interaction_id: asked ? flow.interaction_id : null,
    fields: asked?.fields ?? null,
    choices: asked?.choices ?? null,
    discovered_fields: asked?.discovered_fields ?? null,
    mfa_options: asked?.mfa_options ?? null,
    sign_in_options: asked?.sign_in_options ?? null,
    pending_sso_buttons: asked?.pending_sso_buttons ?? null,
    external_action_message: flow?.external_action_message ?? null,
    website_error: flow?.website_error ?? null,
    sso_provider: flow?.sso_provider ?? null,
    error_code: flow?.error_code ?? null,
    error_message: flow?.error_message ?? null,
    hosted_url: (isInProgress && hostedUrl) || null,
    live_view_url: (isInProgress && liveViewUrl) || null,
    browser_session_id: isInProgress ? flow.session_id : null,
  }
}

/** What a person can answer now. Empty lists are omitted. */
function askedOf({ step, page, known_refs }: StoredFlow) {
  if (!page || (step !== 'AWAITING_INPUT' && step !== 'AWAITING_EXTERNAL_ACTION')) return undefined
  const { fields, choices, discovered_fields, mfa_options, sign_in_options, pending_sso_buttons } = interactionOf(
    page,
    known_refs,
  )
  return {
    ...(fields.length > 0 && { fields, discovered_fields }),
    ...(choices.length > 0 && { choices }),
    ...(mfa_options.length > 0 && { mfa_options }),
    ...(sign_in_options.length > 0 && { sign_in_options }),
    ...(pending_sso_buttons.length > 0 && { pending_sso_buttons }),
  }
}

/** The same state as in the connection, without null fields. */
export function stateEvent(flow: StoredFlow, links: FlowLinks, now: Date): StateEvent {
  const { flow_status, flow_step, flow_expires_at, sso_provider, browser_session_id, ...members } = flowMembers(
    flow,
    links,
  )
  const present = Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null))
  return {
    event: 'managed_auth_state',
    timestamp: now.toISOString(),
    flow_status: flow.status,
    flow_step: flow.step,
    ...present,
    ...(flow.post_login_url !== null && { post_login_url: flow.post_login_url }),
  } as StateEvent
}

export function heartbeat(now: Date): ConnectionEvent {
  return { event: 'sse_heartbeat', timestamp: now.toISOString() }
}

export function timelineRecord(row: TimelineRow): TimelineEvent {
  const isCheck = row.type === 'health_check'
  return {
    type: row.type,
    id: row.id,
    timestamp: row.created_at.toISOString(),
    status: row.status,
    ...(row.previous_status !== null && { previous_status: row.previous_status }),
    ...(row.step !== null && { step: row.status === 'EXPIRED' ? ('EXPIRED' as const) : row.step }),
    ...(row.error_code !== null && { error_code: row.error_code }),
    ...(row.error_message !== null && { error_message: row.error_message }),
    ...(row.website_error !== null && { website_error: row.website_error }),
    ...(row.session_id !== null && { browser_session_id: row.session_id }),
    ...(row.replay_id !== null && { replay_id: row.replay_id }),
    telemetry_captured: row.telemetry_captured,
    ...(!isCheck && row.updated_at && { updated_at: row.updated_at.toISOString() }),
    ...(row.ended_at && { completed_at: row.ended_at.toISOString() }),
  }
}
