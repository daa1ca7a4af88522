/** Hosts, ports and kinds of failures may be logged, and nothing else of what passes. */
export interface EgressLogger {
  debug(facts: Readonly<Record<string, unknown>>, message: string): void
  error(facts: Readonly<Record<string, unknown>>, message: string): void
}
