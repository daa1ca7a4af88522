import type { ConnectionFailure } from '@berth/contract/egress/machine-protocol.ts'

/** Why a machine does not get its connection. */
export type FailureKind = keyof typeof failures

interface FailureFacts {
  /** What the agent is told. */
  readonly told: ConnectionFailure
  /** The word of the header `X-Kernel-Proxy-Error`. */
  readonly code: string
}

const failures = {
  'bad-request': { told: 'bad-request', code: 'upstream_connect_failed' },
  /** By the guard: sessions may not connect there. */
  refused: { told: 'refused', code: 'destination_blocked' },
  'name-not-found': { told: 'name-not-found', code: 'upstream_dns_failure' },
  'name-unanswered': { told: 'name-not-found', code: 'upstream_dns_failure' },
  'connection-refused': { told: 'connection-refused', code: 'upstream_connect_failed' },
  unreachable: { told: 'unreachable', code: 'upstream_connect_failed' },
  timeout: { told: 'timeout', code: 'upstream_timeout' },
  'too-many': { told: 'too-many', code: 'upstream_connect_failed' },
  'internal-error': { told: 'internal-error', code: 'upstream_connect_failed' },
  /** Not among the hosts that the session is allowed. */
  'not-allowed': { told: 'proxy-failed', code: 'network_policy_denied' },
  /** No connection to the proxy itself. */
  'proxy-unreachable': { told: 'proxy-failed', code: 'provider_unreachable' },
  'proxy-not-permitted': { told: 'proxy-failed', code: 'proxy_unavailable' },
  /** It wants other credentials, or does not want this destination. */
  'proxy-rejected': { told: 'proxy-failed', code: 'provider_rejected' },
  'proxy-failed': { told: 'proxy-failed', code: 'upstream_connect_failed' },
  'proxy-timeout': { told: 'proxy-failed', code: 'upstream_timeout' },
  /** What a proxy of the operator's must not be asked for. */
  'proxy-destination-refused': { told: 'proxy-failed', code: 'destination_blocked' },
  /** The proxy of the route is gone. */
  'route-gone': { told: 'proxy-failed', code: 'destination_route_unavailable' },
} as const satisfies Record<string, FailureFacts>

const kindsByErrorCode: Readonly<Record<string, FailureKind>> = {
  ECONNREFUSED: 'connection-refused',
  ETIMEDOUT: 'timeout',
}

/** An expected failure. Its message is for the log and holds nothing that is secret. */
export class EgressFailure extends Error {
  override readonly name = 'EgressFailure'
  readonly kind: FailureKind

  constructor(kind: FailureKind, sentence = '', options?: ErrorOptions) {
    super(sentence, options)
    this.kind = kind
  }

  get told(): ConnectionFailure {
    return failures[this.kind].told
  }

  get code(): string {
    return failures[this.kind].code
  }

  /** Whether egress itself answers plain HTTP with it, so that a page sees what its proxy, or its settings, have done. */
  get isAnswered(): boolean {
    return this.told === 'proxy-failed'
  }
}

/** What it is to a machine that a connection failed. Anything but a system error is a bug. */
export function toEgressFailure(thrown: unknown): EgressFailure {
  if (thrown instanceof EgressFailure) return thrown
  const { code, syscall } = (thrown ?? {}) as NodeJS.ErrnoException
  const otherwise = syscall === undefined ? 'internal-error' : 'unreachable'
  // A DOMException, as signals are aborted with, has a number there.
  return new EgressFailure(kindsByErrorCode[String(code)] ?? otherwise, '', { cause: thrown })
}
