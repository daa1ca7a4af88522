import type { ConnectionFailure } from '@berth/contract/egress/machine-protocol.ts'

/** Why a connection of a machine failed. */
export type FailureKind = keyof typeof failures

interface FailureFacts {
  /** The failure that is sent to the agent. */
  readonly connectionFailure: ConnectionFailure
  /** The value of the header `X-Kernel-Proxy-Error`. */
  readonly code: string
}

const failures = {
  'bad-request': { connectionFailure: 'bad-request', code: 'upstream_connect_failed' },
  /** The guard does not permit sessions to connect there. */
  refused: { connectionFailure: 'refused', code: 'destination_blocked' },
  'name-not-found': { connectionFailure: 'name-not-found', code: 'upstream_dns_failure' },
  'name-unanswered': { connectionFailure: 'name-not-found', code: 'upstream_dns_failure' },
  'connection-refused': { connectionFailure: 'connection-refused', code: 'upstream_connect_failed' },
  unreachable: { connectionFailure: 'unreachable', code: 'upstream_connect_failed' },
  timeout: { connectionFailure: 'timeout', code: 'upstream_timeout' },
  'too-many': { connectionFailure: 'too-many', code: 'upstream_connect_failed' },
  'internal-error': { connectionFailure: 'internal-error', code: 'upstream_connect_failed' },
  /** The host is not among the session's allowed hosts. */
  'not-allowed': { connectionFailure: 'proxy-failed', code: 'network_policy_denied' },
  /** The proxy itself cannot be reached. */
  'proxy-unreachable': { connectionFailure: 'proxy-failed', code: 'provider_unreachable' },
  'proxy-not-permitted': { connectionFailure: 'proxy-failed', code: 'proxy_unavailable' },
  /** The proxy rejects the credentials or the destination. */
  'proxy-rejected': { connectionFailure: 'proxy-failed', code: 'provider_rejected' },
  'proxy-failed': { connectionFailure: 'proxy-failed', code: 'upstream_connect_failed' },
  'proxy-timeout': { connectionFailure: 'proxy-failed', code: 'upstream_timeout' },
  /** The operator's proxy must not be asked for this destination. */
  'proxy-destination-refused': { connectionFailure: 'proxy-failed', code: 'destination_blocked' },
  /** The proxy of this route was deleted. */
  'route-gone': { connectionFailure: 'proxy-failed', code: 'destination_route_unavailable' },
} as const satisfies Record<string, FailureFacts>

const kindsByErrorCode: Readonly<Record<string, FailureKind>> = {
  ECONNREFUSED: 'connection-refused',
  ETIMEDOUT: 'timeout',
}

/** An expected failure. Its message goes to the log and contains no secrets. */
export class EgressFailure extends Error {
  override readonly name = 'EgressFailure'
  readonly kind: FailureKind

  constructor(kind: FailureKind, sentence = '', options?: ErrorOptions) {
    super(sentence, options)
    this.kind = kind
  }

  get connectionFailure(): ConnectionFailure {
    return failures[this.kind].connectionFailure
  }

  get code(): string {
    return failures[this.kind].code
  }

  /** Whether egress answers plain HTTP requests itself, so that a page sees what its proxy or its settings did. */
  get isAnswered(): boolean {
    return this.connectionFailure === 'proxy-failed'
  }
}

/** Converts an error into the failure that the machine sees. Anything but a system error is a bug. */
export function toEgressFailure(thrown: unknown): EgressFailure {
  if (thrown instanceof EgressFailure) return thrown
  const { code, syscall } = (thrown ?? {}) as NodeJS.ErrnoException
  const otherwise = syscall === undefined ? 'internal-error' : 'unreachable'
  // The `code` of a DOMException, as signals throw it, is a number.
  return new EgressFailure(kindsByErrorCode[String(code)] ?? otherwise, '', { cause: thrown })
}
