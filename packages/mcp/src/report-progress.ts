import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type { ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js'

/** Shorter than the timeouts of clients and load balancers for a silent call. */
const pauseMilliseconds = 5_000

/** Reports the elapsed seconds of a call to a client that has asked for progress, until disposed. */
export function reportProgress({
  _meta,
  sendNotification,
}: Pick<RequestHandlerExtra<ServerRequest, ServerNotification>, '_meta' | 'sendNotification'>): Disposable {
  const progressToken = _meta?.progressToken
  const begin = performance.now()
  const tell = async () => {
    const progress = Math.round((performance.now() - begin) / 1000)
    const message = progress === 0 ? 'Started.' : `In progress for ${progress} s.`
    await sendNotification({
      method: 'notifications/progress',
      params: { progressToken: progressToken ?? '', progress, message },
    })
  }
  // The client may be gone. The call itself notices that.
  const tellIfPossible = () => void tell().catch(() => {})
  if (progressToken === undefined) return { [Symbol.dispose]: () => {} }
  tellIfPossible()
  const timer = setInterval(tellIfPossible, pauseMilliseconds)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
