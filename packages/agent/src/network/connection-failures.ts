const maxAgeMilliseconds = 10_000
const maxFailures = 200

interface ConnectionFailureReport {
  /** The code of the telemetry event `proxy_error`. */
  readonly code: string
  readonly status: number
}

interface KnownFailure extends ConnectionFailureReport {
  readonly host: string
  /** Absent: all ports of the host. */
  readonly port: number | undefined
  readonly at: number
}

/**
 * Recent reasons why egress did not open connections. Chromium reports a reset, or a name that does not exist: only
 * egress knows that a proxy has failed, or that the session may not connect there.
 */
class ConnectionFailures {
  readonly #known: KnownFailure[] = []

  note(host: string, port: number | undefined, report: ConnectionFailureReport): void {
    this.#known.push({ ...report, host: host.toLowerCase().replace(/\.$/, ''), port, at: performance.now() })
    if (this.#known.length > maxFailures) this.#known.shift()
  }

  find(address: string): ConnectionFailureReport | undefined {
    if (!URL.canParse(address)) return undefined
    const { hostname, port, protocol } = new URL(address)
    const host = hostname.replace(/^\[|\]$/g, '')
    const wanted = Number(port || (protocol === 'https:' ? 443 : 80))
    const oldest = performance.now() - maxAgeMilliseconds
    return this.#known.findLast(
      (known) => known.at >= oldest && known.host === host && (known.port === undefined || known.port === wanted),
    )
  }
}

/** One per machine, which has one egress. */
export const connectionFailures = new ConnectionFailures()
