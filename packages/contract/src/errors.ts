/** Every error a caller can meet: its HTTP status and its sentence. Codes are promises and are never renamed. */
export const errorCatalogue = {
  bad_request: { status: 400, sentence: (details: { reason: string }) => details.reason },
  invalid_input: { status: 400, sentence: (details: { reason: string }) => details.reason },
  archive_refused: {
    status: 400,
    sentence: (details: { field: string; reason: string }) =>
      `${details.field}: the archive is refused: ${details.reason}.`,
  },
  extension_not_loadable: {
    status: 400,
    sentence: (details: { extension: string; reason: string }) =>
      `The extension ${details.extension} cannot be loaded: ${details.reason}`,
  },
  chrome_store_refused: {
    status: 400,
    sentence: (details: { reason: string }) => `url: the Chrome Web Store gives no such extension: ${details.reason}.`,
  },
  field_not_supported: {
    status: 400,
    sentence: (details: { field: string; reason: string }) => `${details.field}: ${details.reason}`,
  },
  unauthorized: {
    status: 401,
    sentence: (details: { reason: string }) => details.reason,
  },
  forbidden: { status: 403, sentence: (details: { reason: string }) => details.reason },
  project_not_found: { status: 404, sentence: () => 'Project not found or inactive.' },
  route_not_found: {
    status: 404,
    sentence: (details: { method: string; path: string }) => `There is no ${details.method} ${details.path}.`,
  },
  session_not_found: {
    status: 404,
    sentence: (details: { session: string }) => `There is no active session with the id or name ${details.session}.`,
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
  profile_not_found: {
    status: 404,
    sentence: (details: { profile: string }) => `There is no profile with the id or name ${details.profile}.`,
  },
  method_not_allowed: {
    status: 405,
    sentence: (details: { allowed: string }) => `This path takes ${details.allowed} only.`,
  },
  request_timeout: {
    status: 408,
    sentence: () => 'The body did not arrive in time.',
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
  profile_already_loaded: {
    status: 409,
    retry: false,
    sentence: () => 'profile: this session has a profile, which stays until its end.',
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
  session_ended_while_starting: {
    status: 409,
    retry: false,
    sentence: () => 'The session was deleted before it had started.',
  },
  watch_limit_reached: {
    status: 409,
    retry: false,
    sentence: (details: { reason: string }) => details.reason,
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
  internal_error: {
    status: 500,
    sentence: () => 'An unexpected error happened. It was logged with the x-request-id of this answer.',
  },
  computer_action_failed: {
    status: 500,
    // Part of it may have been done.
    retry: false,
    sentence: (details: { reason: string }) => details.reason,
  },
  session_start_failed: {
    status: 500,
    // What kept it from starting is likely to keep the next one, and each attempt takes the host's time.
    retry: false,
    sentence: (details: { reason: string }) => `The session could not be started: ${details.reason}`,
  },
  session_update_failed: {
    status: 500,
    sentence: (details: { reason: string }) => `The session is as it was before: ${details.reason}`,
  },
  session_unreachable: {
    status: 502,
    sentence: () => 'The machine of this session does not answer.',
  },
  operation_interrupted: {
    status: 502,
    // It may have been done, and doing it twice is rarely meant.
    retry: false,
    sentence: () => 'The machine of this session went away before it had answered.',
  },
  shutting_down: {
    status: 503,
    sentence: () => 'The server is stopping. Try again in a moment.',
  },
  database_unavailable: {
    status: 503,
    // Asking again is safe: what was half done is undone when the database is back.
    retry: true,
    sentence: () => 'The database does not answer. Try again in a moment.',
  },
  disk_full: {
    status: 507,
    retry: false, // What fills the disk is in the session, and goes only when somebody deletes it.
    sentence: (details: { field: string }) => `${details.field}: there is no room left on the disk.`,
  },
  capacity_exhausted: {
    status: 529,
    // Refused before anything was made, and room comes with each session that ends.
    retry: true,
    sentence: (details: { reason: string }) => `This host has no room for another session: ${details.reason}`,
  },
} as const satisfies Record<string, CatalogueEntry>

interface CatalogueEntry {
  readonly status: number
  /** Whether the client should send the request again; goes out as `x-should-retry`. Absent: the client decides by the status. */
  readonly retry?: boolean
  // biome-ignore lint/suspicious/noExplicitAny: each sentence names its own details, and BerthError checks them.
  readonly sentence: (details: any) => string
}

export type ErrorCode = keyof typeof errorCatalogue

type DetailsOf<Code extends ErrorCode> =
  Parameters<(typeof errorCatalogue)[Code]['sentence']> extends [infer Details] ? Details : undefined

/** One of several things that were wrong, or a cause further down. */
export interface ErrorDetail {
  readonly code?: string
  readonly message?: string
}

interface BerthErrorOptions extends ErrorOptions {
  /** Each of several faults; for one fault the message says it all. */
  readonly faults?: readonly ErrorDetail[]
}

/** An expected failure. Status and sentence come from the catalogue. */
export class BerthError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'BerthError'
  readonly code: Code
  readonly status: number
  readonly retry: boolean | undefined
  readonly faults: readonly ErrorDetail[] | undefined

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
    this.faults = options?.faults
  }
}
