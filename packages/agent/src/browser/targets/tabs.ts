import { json } from 'node:stream/consumers'
import { http } from '../../http/node-http.ts'
import type { CdpPipe } from '../cdp-pipe.ts'
import type { DevToolsEndpoint } from '../chromium.ts'
import { toDevToolsServer } from '../devtools-server.ts'

/** A page that does not answer within this time is busy and is skipped. */
const answerLimitMilliseconds = 300

/** A browser that does not answer has hung. */
const listLimitMilliseconds = 5_000

interface ListedTarget {
  readonly id: string
  readonly type: string
}

/** The target ids of all pages, the most recently shown one first. */
export async function tabsByActivity({ port }: Pick<DevToolsEndpoint, 'port'>): Promise<readonly string[]> {
  // Only this list is ordered; the protocol's own, Target.getTargets, is not.
  const targets = await new Promise<readonly ListedTarget[]>((resolve, reject) => {
    http
      .get(
        {
          ...toDevToolsServer,
          port,
          path: '/json/list',
          agent: false,
          signal: AbortSignal.timeout(listLimitMilliseconds),
        },
        (response) => {
          json(response).then((list) => resolve(list as readonly ListedTarget[]), reject)
        },
      )
      .on('error', reject)
  })
  return targets.filter(({ type }) => type === 'page').map(({ id }) => id)
}

/** Works on a target in a CDP session that ends with the work. */
export async function withTarget<Result>(
  pipe: CdpPipe,
  targetId: string,
  work: (session: string) => Promise<Result>,
): Promise<Result> {
  const { sessionId } = await pipe.send('Target.attachToTarget', { targetId, flatten: true })
  try {
    return await work(sessionId)
  } finally {
    pipe.send('Target.detachFromTarget', { sessionId }).catch(() => {}) // The page or Chromium has gone.
  }
}

/**
 * The page that a person would see and type into: the most recently shown of those with focus, otherwise the most
 * recently shown of all. With one window the order would suffice; with several, focus decides. A client that emulates
 * focus gives it to every page.
 */
export async function activeTab(pipe: CdpPipe, endpoint: DevToolsEndpoint): Promise<string | undefined> {
  const tabs = await tabsByActivity(endpoint)
  const focused = await Promise.all(tabs.map((tab) => hasFocus(pipe, tab)))
  return tabs.find((_tab, index) => focused[index]) ?? tabs[0]
}

async function hasFocus(pipe: CdpPipe, tab: string): Promise<boolean> {
  const question = { expression: "document.hasFocus() && document.visibilityState === 'visible'" }
  const asked = withTarget(pipe, tab, (session) => pipe.send('Runtime.evaluate', question, session))
  const late = new Promise<undefined>((resolve) => {
    setTimeout(resolve, answerLimitMilliseconds, undefined).unref()
  })
  // A page that has closed meanwhile has no focus.
  const answer = await Promise.race([asked, late]).catch(() => undefined)
  return answer?.result.value === true
}
