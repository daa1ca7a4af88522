/** Logs may contain hosts, ports and kinds of failures, but no other part of the traffic. */
export interface EgressLogger {
  debug(facts: Readonly<Record<string, unknown>>, message: string): void
  error(facts: Readonly<Record<string, unknown>>, message: string): void
}
