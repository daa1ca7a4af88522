import { setTimeout as pause } from 'node:timers/promises'
import robotsPackage from 'robots-parser'
import type { AnalysisSession } from './analysis-sessions.ts'

// Its types declare a default export, but the module is the function itself.
const robotsParser = robotsPackage as unknown as typeof robotsPackage.default

/** The name of berth in robots.txt. */
export const robotsName = 'berth'
const attempts = 3
/** RFC 9309 requires crawlers to process at least this much. */
const maxLength = 512 * 1024

export type Robots = 'allowed' | 'disallowed' | 'unreadable'

/**
 * Checks the URL against the site's robots.txt (RFC 9309). Without one, everything is allowed; while its server fails,
 * nothing is. If the site cannot be reached at all, the visit itself reports that.
 */
export async function askRobots(
  session: AnalysisSession,
  url: string,
  { signal, pauseMilliseconds }: { readonly signal: AbortSignal; readonly pauseMilliseconds: number },
): Promise<Robots> {
  const address = new URL('/robots.txt', url).href
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const answer = await session.fetch(address).catch(() => undefined)
    signal.throwIfAborted()
    if (!answer) return 'allowed'
    if (answer.status < 500) return answer.status < 300 ? judge(address, answer.body, url) : 'allowed'
    if (attempt < attempts) await pause(pauseMilliseconds, undefined, { signal })
  }
  return 'unreadable'
}

function judge(address: string, body: string, url: string): Robots {
  return robotsParser(address, body.slice(0, maxLength)).isDisallowed(url, robotsName) ? 'disallowed' : 'allowed'
}
