const days = 30
const dayMilliseconds = 24 * 60 * 60 * 1000
/** What is written now is in it too, also where the clock of the server is ahead. */
const aheadMilliseconds = 60_000

/** The longest period that the audit log can be asked for. The server refuses one that is longer by a millisecond. */
export function auditPeriod(now = Date.now): { readonly start: string; readonly end: string } {
  const end = now() + aheadMilliseconds
  return { start: new Date(end - days * dayMilliseconds).toISOString(), end: new Date(end).toISOString() }
}
