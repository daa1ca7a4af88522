import type { CdpPipe } from '../cdp-pipe.ts'
import type { CdpAnswer, CdpMethod, CdpParams } from '../cdp-types.ts'

/** A page of our own that no window and no list of tabs shows. It is closed when its work is done. */
export interface HiddenPage {
  send<Method extends CdpMethod>(method: Method, params?: CdpParams<Method>): Promise<CdpAnswer<Method>>
  evaluate(expression: string): Promise<unknown>
}

/** Our own pages do little. */
const answerLimitMilliseconds = 10_000

export async function inHiddenPage<Result>(
  pipe: CdpPipe,
  work: (page: HiddenPage) => Promise<Result>,
  url = 'about:blank',
): Promise<Result> {
  const { targetId } = await pipe.send('Target.createTarget', { url, hidden: true })
  try {
    const { sessionId } = await pipe.send('Target.attachToTarget', { targetId, flatten: true })
    const send: HiddenPage['send'] = (method, params) =>
      pipe.send(method, params, { sessionId, limitMilliseconds: answerLimitMilliseconds })
    return await work({
      send,
      async evaluate(expression) {
        const { result } = await send('Runtime.evaluate', { expression, returnByValue: true })
        return result.value
      },
    })
  } finally {
    await pipe.send('Target.closeTarget', { targetId }).catch(() => {}) // It ended with its Chromium.
  }
}
