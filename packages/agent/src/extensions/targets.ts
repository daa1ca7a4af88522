import { setTimeout as delay } from 'node:timers/promises'
import type { CdpPipe } from '../browser/cdp-pipe.ts'
import { type HiddenPage, inHiddenPage } from '../browser/targets/in-hidden-page.ts'
import { withTarget } from '../browser/targets/tabs.ts'

const pollMilliseconds = 50

interface Target {
  readonly targetId: string
  readonly url: string
}

/** A target of the extension as soon as one exists; undefined after the time limit. */
export async function findTarget(pipe: CdpPipe, id: string, limitMilliseconds: number): Promise<Target | undefined> {
  return look(limitMilliseconds, async () => {
    const { targetInfos } = await pipe.send('Target.getTargets')
    return targetInfos.find(({ url }) => url.startsWith(`chrome-extension://${id}/`))
  })
}

/** Resolves when the extension's worker answers, or after the time limit. */
export async function workerRuns(pipe: CdpPipe, id: string, limitMilliseconds: number): Promise<void> {
  const limit = delay(limitMilliseconds)
  await Promise.race([limit, answerOfWorker(pipe, id, limitMilliseconds).catch(() => limit)])
}

async function answerOfWorker(pipe: CdpPipe, id: string, limitMilliseconds: number): Promise<void> {
  const worker = await findTarget(pipe, id, limitMilliseconds)
  if (!worker) throw new Error('the extension has no worker')
  await withTarget(pipe, worker.targetId, (session) => pipe.send('Runtime.evaluate', { expression: '1' }, session))
}

/** Queries the page that shows extensions to a person; CDP reports unpacked ones only. */
const enabledExtensions = `chrome.developerPrivate.getExtensionsInfo().then((all) =>
  all.filter(({ state }) => state === 'ENABLED').map(({ id }) => id))`

/**
 * Resolves with those of the extensions that Chromium has installed, as soon as it has all of them or the time limit
 * passes. Must run before clients connect, because they would see the page.
 */
export async function installedOf(
  pipe: CdpPipe,
  ids: readonly string[],
  limitMilliseconds: number,
): Promise<ReadonlySet<string>> {
  let installed = new Set<string>()
  const lookOnce = async (page: HiddenPage) => {
    const call = { expression: enabledExtensions, awaitPromise: true, returnByValue: true }
    const { result } = await page.send('Runtime.evaluate', call)
    const { value } = result // Undefined until the page has loaded.
    installed = new Set(Array.isArray(value) ? value.filter((id) => ids.includes(id)) : [])
    return installed.size === new Set(ids).size || undefined
  }
  await inHiddenPage(pipe, (page) => look(limitMilliseconds, () => lookOnce(page)), 'chrome://extensions')
  return installed
}

/** Polls, because Chromium sends no events for these changes. */
async function look<Found>(
  limitMilliseconds: number,
  find: () => Promise<Found | undefined>,
): Promise<Found | undefined> {
  const giveUp = performance.now() + limitMilliseconds
  for (;;) {
    const found = await find()
    if (found !== undefined || performance.now() > giveUp) return found
    await delay(pollMilliseconds)
  }
}
