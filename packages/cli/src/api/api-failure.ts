/** Exit codes of sysexits.h. */
const exitCodes = {
  usage: 64,
  data: 65,
  noInput: 66,
  unavailable: 69,
  software: 70,
  cannotCreate: 73,
  temporary: 75,
  permission: 77,
} as const

/** What the user is told in one line, with the exit code of its class. */
export class ApiFailure extends Error {
  readonly exitCode: number

  constructor(message: string, kind: keyof typeof exitCodes) {
    super(message)
    this.exitCode = exitCodes[kind]
  }
}

/** The server cannot be reached, or no longer. */
export class LostConnection extends ApiFailure {
  constructor(message: string) {
    super(message, 'unavailable')
  }
}

interface ErrorBody {
  readonly code?: string
  readonly message?: string
  readonly details?: readonly { readonly message?: string }[]
}

/** Reads the error of a response that is not a success. */
export async function failureOf(response: Response): Promise<ApiFailure> {
  const { status } = response
  const text = await response.text()
  const { code, message, details = [] } = parsed(text)
  const parts = [
    message ?? `it answered with status ${status}, unlike a berth server`,
    ...details.map((detail) => detail.message ?? ''),
  ]
  const hint = hints[status] ?? (code === 'internal_error' ? 'see the log of the server' : undefined)
  const sentence = [...new Set(parts.filter(Boolean))].join(' ')
  return new ApiFailure(`${sentence} (${[code ?? status, hint].filter(Boolean).join('; ')})`, kindOf(status))
}

const hints: Readonly<Record<number, string>> = {
  401: 'berth login stores another API key',
  403: 'use an API key with this permission: berth auth context shows yours',
  429: 'try again later',
  529: 'try again later, or end sessions: berth browsers list',
}

function kindOf(status: number): keyof typeof exitCodes {
  if (status === 401 || status === 403) return 'permission'
  if (status === 404 || status === 410) return 'noInput'
  if (status === 409 || status === 422) return 'data'
  if (status === 429 || status === 503 || status === 529) return 'temporary'
  return status < 500 ? 'usage' : 'software'
}

function parsed(text: string): ErrorBody {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' && body !== null ? body : {}
  } catch {
    return {}
  }
}
