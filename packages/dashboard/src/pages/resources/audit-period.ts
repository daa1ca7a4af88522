const days = 30
const dayMilliseconds = 24 * 60 * 60 * 1000
/** Includes events that are written now, even if the server's clock is ahead. */
const aheadMilliseconds = 60_000

/** The longest period that the audit log accepts, to the millisecond. */
export function auditPeriod(now = Date.now): { readonly start: string; readonly end: string } {
  const end = now() + aheadMilliseconds
  return { start: new Date(end - days * dayMilliseconds).toISOString(), end: new Date(end).toISOString() }
}
