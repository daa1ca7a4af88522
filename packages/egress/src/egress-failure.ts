/** Why a machine does not get its connection. Goes out in the header `X-Berth-Egress`, so kinds are never renamed. */
export type FailureKind = keyof typeof statuses

const statuses = {
  'bad-request': 400,
  refused: 403,
  'name-not-found': 502,
  'connection-refused': 502,
  'connection-closed': 502,
  unreachable: 502,
  'bad-answer': 502,
  'headers-too-large': 431,
  'internal-error': 500,
  timeout: 504,
} as const

const kindsByErrorCode: Readonly<Record<string, FailureKind>> = {
  ECONNREFUSED: 'connection-refused',
  ECONNRESET: 'connection-closed',
  EPIPE: 'connection-closed',
  ETIMEDOUT: 'timeout',
}

/** An expected failure: a status for the client, and for the person a sentence without anything it must not know. */
export class EgressFailure extends Error {
  override readonly name = 'EgressFailure'
  readonly kind: FailureKind
  readonly status: number

  constructor(kind: FailureKind, sentence = '', options?: ErrorOptions) {
    super(sentence, options)
    this.kind = kind
    this.status = statuses[kind]
  }
}

/** What it is to the client that a connection failed or broke. Anything but a system error is a bug. */
export function toEgressFailure(thrown: unknown): EgressFailure {
  if (thrown instanceof EgressFailure) return thrown
  const { code = '', syscall } = thrown as NodeJS.ErrnoException
  const otherwise = syscall === undefined ? 'internal-error' : 'unreachable'
  return new EgressFailure(kindsByErrorCode[code] ?? (code.startsWith('HPE_') ? 'bad-answer' : otherwise), '', {
    cause: thrown,
  })
}
