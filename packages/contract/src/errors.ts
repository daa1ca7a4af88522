/**
 * Every error that callers can receive, with its HTTP status and message. Codes are part of the API and never renamed.
 */
export const errorCatalogue = {
  bad_request: { status: 400, sentence: (details: { reason: string }) => details.reason },
  invalid_input: { status: 400, sentence: (details: { reason: string }) => details.reason },
  archive_refused: {
    status: 400,
    sentence: (details: { field: string; reason: string }) =>
      `${details.field}: the archive is rejected: ${details.reason}.`,
  },
  extension_not_loadable: {
    status: 400,
    sentence: (details: { extension: string; reason: string }) =>
      `The extension ${details.extension} cannot be loaded: ${details.reason}`,
  },
  chrome_store_refused: {
    status: 400,
    sentence: (details: { reason: string }) =>
      `url: the Chrome Web Store does not provide this extension: ${details.reason}.`,
  },
  field_not_supported: {
    status: 400,
    sentence: (details: { field: string; reason: string }) => `${details.field}: ${details.reason}`,
  },
  search_params_not_servable: {
    status: 400,
    sentence: (details: { reason: string }) => `strict_params: ${details.reason}`,
  },
  invalid_request: { status: 400, sentence: (details: { reason: string }) => details.reason },
  encryption_key_mismatch: {
    status: 400,
    sentence: (details: { field: string }) =>
      `${details.field}: is encrypted for another key than that of this vault: get its encryption_key.`,
  },
  fill_page_not_found: {
    status: 400,
    publicCode: 'page_not_found',
    sentence: () => 'page_url: the browser has no page open with this URL.',
  },
  ambiguous_page: {
    status: 400,
    sentence: () => 'page_url: several open pages match.',
  },
  field_unavailable: {
    status: 400,
    sentence: (details: { field: string }) => `fields: the item has no value for ${details.field}.`,
  },
  invocation_finished: {
    status: 400,
    sentence: (details: { invocation: string; status: string }) =>
      `The invocation ${details.invocation} has finished: it is ${details.status}.`,
  },
  no_active_flow: {
    status: 400,
    retry: false,
    sentence: () => 'No login of this connection waits for an answer.',
  },
  handoff_code_invalid: {
    status: 400,
    retry: false,
    sentence: () => 'code: is not the code of a login of this connection.',
  },
  unauthorized: {
    status: 401,
    sentence: (details: { reason: string }) => details.reason,
  },
  forbidden: { status: 403, sentence: (details: { reason: string }) => details.reason },
  insufficient_scope: {
    status: 403,
    retry: false,
    sentence: (details: { scopes: string }) => `The access token lacks the scope ${details.scopes}.`,
  },
  insufficient_plan: { status: 403, sentence: (details: { reason: string }) => details.reason },
  destination_denied: {
    status: 403,
    retry: false,
    sentence: (details: { reason: string }) => `The values may not be filled in there: ${details.reason}.`,
  },
  auth_connection_not_found: {
    status: 404,
    sentence: (details: { connection: string }) => `There is no connection with the id ${details.connection}.`,
  },
  project_not_found: { status: 404, sentence: () => 'Project not found or inactive.' },
  projects_disabled: { status: 404, sentence: () => 'The operator of this service has disabled projects.' },
  deployment_not_found: {
    status: 404,
    sentence: (details: { deployment: string }) => `There is no deployment with the id ${details.deployment}.`,
  },
  invocation_not_found: {
    status: 404,
    sentence: (details: { invocation: string }) =>
      `No invocation, or more than one, has an id that begins with ${details.invocation}.`,
  },
  action_not_found: {
    status: 404,
    sentence: (details: { reason: string }) => details.reason,
  },
  credential_not_found: {
    status: 404,
    sentence: (details: { credential: string }) => `There is no credential with the id or name ${details.credential}.`,
  },
  vault_not_found: {
    status: 404,
    sentence: (details: { vault: string }) => `There is no vault with the id or name ${details.vault}.`,
  },
  vault_item_not_found: {
    status: 404,
    sentence: (details: { key: string }) => `The vault has no item with the key ${details.key}.`,
  },
  vault_event_not_found: {
    status: 404,
    sentence: (details: { event: string }) =>
      `after: the item has no event ${details.event}; the newest 1000 are kept.`,
  },
  vault_provider_config_not_found: {
    status: 404,
    sentence: (details: { config: string }) =>
      `There is no vault provider config with the id or name ${details.config}.`,
  },
  credential_provider_not_found: {
    status: 404,
    sentence: (details: { provider: string }) => `There is no credential provider with the id ${details.provider}.`,
  },
  export_destination_not_found: {
    status: 404,
    sentence: (details: { destination: string }) =>
      `There is no export destination with the id ${details.destination}.`,
  },
  otlp_destination_not_found: {
    status: 404,
    sentence: (details: { destination: string }) =>
      `There is no telemetry destination with the id or name ${details.destination}.`,
  },
  webhook_not_found: {
    status: 404,
    sentence: (details: { webhook: string }) => `There is no webhook with the id ${details.webhook}.`,
  },
  webhook_delivery_not_found: {
    status: 404,
    sentence: (details: { delivery: string }) => `The webhook has no delivery ${details.delivery}.`,
  },
  totp_secret_not_found: { status: 404, sentence: () => 'The credential has no TOTP secret.' },
  // The message omits the requested id: people paste keys in its place, and clients log messages.
  api_key_not_found: { status: 404, sentence: () => 'There is no API key with this id.' },
  route_not_found: {
    status: 404,
    sentence: (details: { method: string; path: string }) => `There is no ${details.method} ${details.path}.`,
  },
  session_not_found: {
    status: 404,
    sentence: (details: { session: string }) => `There is no active session with the id or name ${details.session}.`,
  },
  analysis_not_found: {
    status: 404,
    sentence: (details: { analysis: string }) => `There is no analysis with the id ${details.analysis}.`,
  },
  extension_not_found: {
    status: 404,
    sentence: (details: { extension: string }) => `There is no extension with the id or name ${details.extension}.`,
  },
  file_not_found: {
    status: 404,
    sentence: (details: { field: string; path: string }) => `${details.field}: there is no ${details.path}.`,
  },
  watch_not_found: {
    status: 404,
    sentence: (details: { watch: string }) => `watch_id: there is no watch ${details.watch}.`,
  },
  proxy_not_found: {
    status: 404,
    sentence: (details: { proxy: string }) => `There is no proxy with the id or name ${details.proxy}.`,
  },
  process_not_found: {
    status: 404,
    sentence: (details: { processId: string }) =>
      `process_id: there is no ${details.processId}; a process is forgotten a minute after its end.`,
  },
  process_not_running: { status: 404, sentence: () => 'The process is not running any more.' },
  process_has_no_terminal: {
    status: 400,
    sentence: () => 'The process has no terminal: spawn it with allocate_tty.',
  },
  process_input_closed: { status: 400, sentence: () => 'The process has closed its standard input.' },
  executor_not_found: {
    status: 404,
    sentence: (details: { name: string }) => `name: there is no executor ${details.name}.`,
  },
  custom_tool_not_found: {
    status: 404,
    sentence: (details: { id: string }) => `id: there is no custom tool ${details.id}.`,
  },
  page_not_found: {
    status: 404,
    sentence: () => 'The browser has no page open.',
  },
  element_not_found: {
    status: 404,
    sentence: (details: { ref: string }) =>
      `ref: there is no element ${details.ref} in the page any more. Take a snapshot.`,
  },
  target_not_found: { status: 404, sentence: (details: { reason: string }) => details.reason },
  tool_not_found: {
    status: 404,
    sentence: () => 'tool_ref: there is no such tool, or its document is gone. List the tools again.',
  },
  search_not_found: {
    status: 404,
    sentence: (details: { search: string }) =>
      `There is no search with the id ${details.search}; a search is kept for 24 hours.`,
  },
  replay_not_found: {
    status: 404,
    sentence: (details: { replay: string }) => `There is no recording ${details.replay} of this session.`,
  },
  profile_not_found: {
    status: 404,
    sentence: (details: { profile: string }) => `There is no profile with the id or name ${details.profile}.`,
  },
  pool_not_found: {
    status: 404,
    sentence: (details: { pool: string }) => `There is no browser pool with the id or name ${details.pool}.`,
  },
  pool_has_leases: {
    status: 400,
    sentence: (details: { leases: number }) => `force: ${details.leases} browsers of the pool are leased.`,
  },
  session_not_leased: {
    status: 404,
    sentence: (details: { session: string }) =>
      `session_id: ${details.session} is not the id of a session that is leased from this pool.`,
  },
  method_not_allowed: {
    status: 405,
    sentence: (details: { allowed: string }) => `This path accepts only ${details.allowed}.`,
  },
  request_timeout: {
    status: 408,
    sentence: () => 'The body did not arrive in time.',
  },
  auth_connection_exists: {
    status: 409,
    publicCode: 'already_exists',
    retry: false,
    sentence: (details: { profile: string; domain: string }) =>
      `The profile ${details.profile} has a connection to ${details.domain} already.`,
  },
  credential_name_taken: {
    status: 409,
    retry: false,
    sentence: (details: { name: string }) => `name: ${details.name} is the name of another credential.`,
  },
  auth_connection_not_usable: {
    status: 409,
    retry: false,
    sentence: (details: { reason: string }) => `spec.connection_id: ${details.reason}`,
  },
  vault_item_exists: {
    status: 409,
    retry: false,
    sentence: (details: { key: string }) => `key: ${details.key} is the key of an item with another spec.`,
  },
  vault_item_changed: { status: 409, retry: false, sentence: (details: { reason: string }) => details.reason },
  vault_full: {
    status: 409,
    retry: false,
    sentence: (details: { limit: number }) => `The vault has ${details.limit} items, which is its limit.`,
  },
  vault_operation_not_available: {
    status: 409,
    retry: false,
    sentence: (details: { type: string }) => `type: the item does not offer ${details.type} in its current state.`,
  },
  expansion_not_available: {
    status: 409,
    retry: false,
    sentence: (details: { expansion: string }) => `expand: the item does not offer ${details.expansion}.`,
  },
  vault_not_linked: {
    status: 409,
    retry: false,
    sentence: () => 'browser_id: the browser was created without this vault.',
  },
  vault_fill_under_way: {
    status: 409,
    retry: false,
    sentence: () => 'browser_id: the browser is being filled in by another call.',
  },
  vault_provider_config_name_taken: {
    status: 409,
    retry: false,
    sentence: (details: { name: string }) => `name: ${details.name} is the name of another vault provider config.`,
  },
  credential_provider_name_taken: {
    status: 409,
    retry: false,
    sentence: (details: { name: string }) => `name: ${details.name} is the name of another credential provider.`,
  },
  project_name_taken: {
    status: 409,
    retry: false,
    sentence: (details: { name: string }) => `name: ${details.name} is the name of another project.`,
  },
  last_active_project: {
    status: 409,
    retry: false,
    sentence: () => 'This is the last active project, and an organization must have at least one.',
  },
  project_not_empty: {
    status: 409,
    retry: false,
    sentence: (details: { resource: string }) =>
      `The project still contains ${details.resource}. Delete its content first.`,
  },
  otlp_destination_name_taken: {
    status: 409,
    sentence: (details: { name: string }) =>
      `A telemetry destination of this organization has the name ${details.name}.`,
  },
  proxy_in_use: {
    status: 400,
    publicCode: 'resource_in_use',
    sentence: () => 'An auth connection uses the proxy. Select another proxy for it, or delete the connection, first.',
  },
  otlp_destination_in_use: { status: 409, sentence: () => 'An active session exports its telemetry there.' },
  webhook_limit_reached: {
    status: 409,
    retry: false,
    sentence: (details: { limit: number }) => `The project has ${details.limit} webhooks, which is its limit.`,
  },
  webhook_disabled: { status: 409, retry: false, sentence: () => 'The webhook is disabled. Enable it first.' },
  webhook_backlog_full: {
    status: 409,
    retry: false,
    sentence: (details: { limit: number }) =>
      `The webhook has ${details.limit} pending deliveries, which is its limit.`,
  },
  session_name_taken: {
    status: 409,
    retry: false,
    sentence: (details: { name: string }) => `name: ${details.name} is the name of another active session.`,
  },
  profile_name_taken: {
    status: 409,
    retry: false,
    sentence: (details: { name: string }) => `name: ${details.name} is the name of another profile.`,
  },
  pool_name_taken: {
    status: 409,
    retry: false,
    sentence: (details: { name: string }) => `name: ${details.name} is the name of another browser pool.`,
  },
  pool_changed_meanwhile: {
    status: 409,
    retry: true,
    sentence: () => 'Other requests changed the pool repeatedly. This update changed nothing.',
  },
  profile_already_loaded: {
    status: 409,
    retry: false,
    sentence: () => 'profile: this session already has a profile, which cannot be replaced.',
  },
  profile_not_loadable: {
    status: 409,
    retry: false,
    sentence: (details: { profile: string }) => `profile: the saved state of ${details.profile} cannot be loaded.`,
  },
  extension_name_taken: {
    status: 409,
    retry: false,
    sentence: (details: { name: string }) => `name: ${details.name} is the name of another extension.`,
  },
  viewport_in_use: {
    status: 409,
    // A live view or a recording may last long.
    retry: false,
    sentence: (details: { use: string }) =>
      `viewport: stays as it is while ${details.use}. Send viewport.force: true to change it nevertheless.`,
  },
  replay_limit_reached: {
    status: 409,
    retry: false,
    sentence: (details: { reason: string }) => details.reason,
  },
  session_ended_while_starting: {
    status: 409,
    retry: false,
    sentence: () => 'The session was deleted before it had started.',
  },
  custom_tool_name_taken: {
    status: 409,
    retry: false,
    sentence: (details: { name: string; namespace: string }) =>
      `source: ${details.name} is the name of another tool in the namespace ${details.namespace}.`,
  },
  executor_limit_reached: {
    status: 409,
    retry: false,
    sentence: (details: { limit: number }) => `executor: there are ${details.limit} already. Delete one that is done.`,
  },
  watch_limit_reached: {
    status: 409,
    retry: false,
    sentence: (details: { reason: string }) => details.reason,
  },
  handoff_code_used: {
    status: 410,
    retry: false,
    sentence: () => 'code: it was already used, or its login is over. Start another login.',
  },
  body_too_large: {
    status: 413,
    sentence: (details: { limitBytes: number }) => `The body is larger than ${details.limitBytes} bytes.`,
  },
  part_too_large: {
    status: 413,
    sentence: (details: { field: string; limitBytes: number }) =>
      `${details.field}: must have at most ${details.limitBytes} bytes.`,
  },
  unsupported_media_type: {
    status: 415,
    sentence: (details: { reason: string }) => details.reason,
  },
  range_not_satisfiable: {
    status: 416,
    sentence: (details: { sizeBytes: number }) => `range: lies beyond the ${details.sizeBytes} bytes of the file.`,
  },
  stale_interaction: {
    status: 422,
    retry: false,
    sentence: () => 'interaction_id: the login now asks for something else. Read its state again.',
  },
  submission_refused: {
    status: 422,
    retry: false,
    sentence: (details: { field: string; reason: string }) => `${details.field}: ${details.reason}`,
  },
  session_limit_reached: {
    status: 429,
    retry: true,
    sentence: (details: { owner: 'organization' | 'project'; limit: number }) =>
      `The ${details.owner} has ${details.limit} sessions, which is its limit. Delete one, or try again later.`,
  },
  invocation_limit_reached: {
    status: 429,
    retryAfterSeconds: 2,
    retry: true,
    sentence: (details: { owner: 'organization' | 'project' | 'app'; limit: number }) =>
      `The ${details.owner} has ${details.limit} invocations, which is its limit. Wait for one to end, or cancel one.`,
  },
  deployment_limit_reached: {
    status: 429,
    retryAfterSeconds: 30,
    retry: true,
    sentence: (details: { limit: number }) =>
      `${details.limit} deployments of this project are being built, which is its limit. Try again later.`,
  },
  analysis_limit_reached: {
    status: 429,
    retryAfterSeconds: 30,
    retry: true,
    sentence: (details: { limit: number }) =>
      `${details.limit} analyses of this project run already, which is its limit. Cancel one, or try again later.`,
  },
  rate_limited: {
    status: 429,
    retry: true,
    sentence: (details: { limit: number }) =>
      `The organization has sent more than ${details.limit} of these requests in a minute.`,
  },
  too_many_tool_calls: {
    status: 429,
    retryAfterSeconds: 1,
    retry: true,
    sentence: (details: { limit: number }) => `The organization has ${details.limit} tool calls in progress already.`,
  },
  process_input_full: {
    status: 429,
    retryAfterSeconds: 1,
    retry: true,
    sentence: (details: { limitBytes: number }) =>
      `data_b64: with it more than ${details.limitBytes} bytes would wait for the process to read them.`,
  },
  too_many_sign_ins: {
    status: 429,
    retryAfterSeconds: 60,
    retry: false,
    sentence: () => 'This address has tried to sign in too often without success. Wait a minute.',
  },
  too_many_viewers: {
    status: 429,
    retryAfterSeconds: 5,
    sentence: (details: { reason: string }) => details.reason,
  },
  too_many_processes: {
    status: 429,
    // Resources become free only when a session ends, so an immediate retry fails too.
    retry: false,
    sentence: (details: { limit: number }) =>
      `The session already runs ${details.limit} processes, which is its limit.`,
  },
  process_start_failed: {
    status: 500,
    retry: false,
    sentence: (details: { command: string; reason: string }) =>
      `Failed to start process: ${details.command}: ${details.reason}`,
  },
  process_timed_out: {
    status: 500,
    retry: false,
    sentence: (details: { seconds: number }) =>
      `Process timed out: it was killed after ${details.seconds} seconds, with all that it had started.`,
  },
  internal_error: {
    status: 500,
    sentence: () => 'An unexpected error occurred. It was logged with the x-request-id of this response.',
  },
  page_wait_timed_out: {
    status: 504,
    retry: false,
    sentence: (details: { reason: string }) => `The page did not change as expected in time: ${details.reason}`,
  },
  navigation_failed: {
    status: 502,
    retry: false,
    sentence: (details: { reason: string }) => `url: the page did not load: ${details.reason}`,
  },
  element_not_usable: {
    status: 409,
    retry: false,
    sentence: (details: { ref: string; reason: string }) => `ref: ${details.ref} ${details.reason}`,
  },
  page_not_answering: {
    status: 500,
    sentence: () => 'The page does not respond. Nothing was started.',
  },
  computer_action_failed: {
    status: 500,
    // Part of the request may have been executed.
    retry: false,
    sentence: (details: { reason: string }) => details.reason,
  },
  session_start_failed: {
    status: 500,
    // The next attempt is likely to fail for the same reason, and each attempt uses resources of the host.
    retry: false,
    sentence: (details: { reason: string }) => `The session could not be started: ${details.reason}`,
  },
  replay_start_failed: {
    status: 500,
    retry: false,
    sentence: (details: { reason: string }) => `The recording could not be started: ${details.reason}`,
  },
  session_update_failed: {
    status: 500,
    sentence: (details: { reason: string }) => `The session is unchanged: ${details.reason}`,
  },
  curl_failed: {
    status: 502,
    // The request may have arrived. Only the caller knows whether it can be repeated.
    retry: false,
    sentence: (details: { reason: string }) => `The request failed: ${details.reason}`,
  },
  credential_provider_failed: {
    status: 502,
    // Each attempt takes up to the provider's time limit, and the owner of the provider has to act first.
    retry: false,
    sentence: (details: { reason: string }) => details.reason,
  },
  search_failed: {
    status: 502,
    // Every provider was tried already, and each attempt costs the operator money.
    retry: false,
    sentence: (details: { reason: string }) => details.reason,
  },
  session_unreachable: {
    status: 502,
    sentence: () => 'The machine of this session does not respond.',
  },
  operation_interrupted: {
    status: 502,
    // The request may have been executed, and executing it twice is rarely intended.
    retry: false,
    sentence: () => 'The machine of this session disconnected before it responded.',
  },
  session_moving: {
    status: 503,
    retryAfterSeconds: 1,
    // The client has to send the body again, because this server no longer has it.
    retry: true,
    sentence: () => 'The session is being moved to another server. Try again in a moment.',
  },
  shutting_down: {
    status: 503,
    retryAfterSeconds: 1,
    sentence: () => 'The server is stopping. Try again in a moment.',
  },
  egress_unavailable: {
    status: 503,
    retryAfterSeconds: 1,
    retry: true,
    sentence: () => 'The egress of this host does not respond. Try again in a moment.',
  },
  oauth_issuer_unavailable: {
    status: 503,
    retryAfterSeconds: 1,
    retry: true,
    sentence: () => 'The issuer of the access token does not respond. Try again in a moment.',
  },
  database_unavailable: {
    status: 503,
    retryAfterSeconds: 1,
    // Safe to repeat: half-finished work is undone when the database is available again.
    retry: true,
    sentence: () => 'The database does not respond. Try again in a moment.',
  },
  database_busy: {
    status: 503,
    retryAfterSeconds: 1,
    // Safe to repeat, like database_unavailable.
    retry: true,
    sentence: () => 'All connections to the database are in use. Try again in a moment.',
  },
  outcome_unknown: {
    status: 504,
    // The request was started and may have had its effect.
    retry: false,
    sentence: (details: { reason: string }) => `The result of the tool is unknown: ${details.reason}`,
  },
  disk_full: {
    status: 507,
    retry: false, // The files that fill the disk belong to the session and stay until somebody deletes them.
    sentence: (details: { field: string }) => `${details.field}: the disk is full.`,
  },
  too_many_connections: {
    status: 429,
    retryAfterSeconds: 1,
    // Nothing was started, and each connection that ends makes room.
    retry: true,
    sentence: (details: { limit: number }) =>
      `This address already has ${details.limit} open connections, which is the limit.`,
  },
  capacity_exhausted: {
    status: 529,
    retryAfterSeconds: 5,
    // Rejected before anything was created, and each session that ends makes room.
    retry: true,
    sentence: (details: { reason: string }) => `This host has no room for another session: ${details.reason}`,
  },
} as const satisfies Record<string, CatalogueEntry>

interface CatalogueEntry {
  readonly status: number
  /** The code that callers see, if it differs. Used when one public code has two statuses. */
  readonly publicCode?: string
  /**
   * Whether the client should repeat the request, sent as `x-should-retry`. When absent, the client decides by the
   * status.
   */
  readonly retry?: boolean
  /** When a repeated request may succeed, sent as `retry-after`. */
  readonly retryAfterSeconds?: number
  // biome-ignore lint/suspicious/noExplicitAny: each sentence names its own details, and BerthError checks them.
  readonly sentence: (details: any) => string
}

export type ErrorCode = keyof typeof errorCatalogue

/** The code that callers see. */
export function publicCodeOf(code: ErrorCode): string {
  const entry: CatalogueEntry = errorCatalogue[code]
  return entry.publicCode ?? code
}

type DetailsOf<Code extends ErrorCode> =
  Parameters<(typeof errorCatalogue)[Code]['sentence']> extends [infer Details] ? Details : undefined

/** One of several faults, or an underlying cause. */
export interface ErrorDetail {
  readonly code?: string
  readonly message?: string
}

interface BerthErrorOptions extends ErrorOptions {
  /** The individual faults, if there are several. A single fault is described by the message. */
  readonly faults?: readonly ErrorDetail[]
  /** When a repeated request may succeed. Overrides the catalogue. */
  readonly retryAfterSeconds?: number
  /** Why a request of the browser failed. */
  readonly netError?: NetError
  /** The id of the existing resource that the request conflicts with. */
  readonly existingId?: string
}

/** Chromium's number and name: -105, `ERR_NAME_NOT_RESOLVED`. */
export interface NetError {
  readonly net_error?: number
  readonly net_error_name: string
}

/** An expected failure. The catalogue defines its status and message. */
export class BerthError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'BerthError'
  readonly code: Code
  readonly status: number
  readonly retry: boolean | undefined
  readonly retryAfterSeconds: number | undefined
  readonly faults: readonly ErrorDetail[] | undefined
  readonly netError: NetError | undefined
  readonly existingId: string | undefined

  constructor(
    code: Code,
    ...[details, options]: DetailsOf<Code> extends undefined
      ? [details?: undefined, options?: BerthErrorOptions]
      : [details: DetailsOf<Code>, options?: BerthErrorOptions]
  ) {
    const entry: CatalogueEntry = errorCatalogue[code]
    super(entry.sentence(details), options?.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.status = entry.status
    this.retry = entry.retry
    this.retryAfterSeconds = options?.retryAfterSeconds ?? entry.retryAfterSeconds
    this.faults = options?.faults
    this.netError = options?.netError
    this.existingId = options?.existingId
  }
}
