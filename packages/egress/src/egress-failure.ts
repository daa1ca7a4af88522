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
  /** No connection to the proxy itself. */
  'proxy-unreachable': 502,
  'proxy-not-permitted': 502,
  /** It wants other credentials, or does not want this destination. */
  'proxy-rejected': 502,
  'proxy-failed': 502,
  'proxy-timeout': 502,
  /** The proxy of the route is gone. */
  'route-gone': 502,
} as const

/** The same in the words that clients of this interface know, from the header `X-Kernel-Proxy-Error`. */
const proxyErrors: Partial<Readonly<Record<FailureKind, string>>> = {
  refused: 'destination_blocked',
  'name-not-found': 'upstream_dns_failure',
  'connection-refused': 'upstream_connect_failed',
  'connection-closed': 'origin_response_incomplete',
  unreachable: 'upstream_connect_failed',
  'bad-answer': 'origin_response_incomplete',
  timeout: 'upstream_timeout',
  'proxy-unreachable': 'provider_unreachable',
  'proxy-not-permitted': 'proxy_unavailable',
  'proxy-rejected': 'provider_rejected',
  'proxy-failed': 'upstream_connect_failed',
  'proxy-timeout': 'upstream_timeout',
  'route-gone': 'destination_route_unavailable',
}

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

  /** What the header `X-Kernel-Proxy-Error` says of it. */
  get proxyError(): string | undefined {
    return proxyErrors[this.kind]
  }

  /** Whether nothing was ever connected to: Chromium is to see just that, and not an answer. */
  get isOfProxyItself(): boolean {
    return this.kind === 'proxy-unreachable' || this.kind === 'proxy-not-permitted'
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
