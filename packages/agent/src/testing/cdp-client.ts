import { CommandClient } from './command-client.ts'

export interface CdpMessage {
  readonly id?: number
  readonly method?: string
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly params?: any
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly result?: any
  readonly error?: { readonly message: string }
  readonly sessionId?: string
}

/** A bare websocket that speaks CDP. */
export class CdpClient extends CommandClient<CdpMessage> {
  static open(url: string): Promise<CdpClient> {
    return new CdpClient(url).opened()
  }

  ask(method: string, params: object = {}, sessionId?: string): Promise<CdpMessage> {
    return this.command({ method, params, ...(sessionId !== undefined && { sessionId }) })
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  async send(method: string, params: object = {}, sessionId?: string): Promise<any> {
    const { result, error } = await this.ask(method, params, sessionId)
    if (error) throw new Error(error.message)
    return result
  }

  /** CDP session of the first page. */
  async attach(): Promise<string> {
    const { targetInfos } = await this.send('Target.getTargets')
    const { targetId } = targetInfos.find(({ type }: { type: string }) => type === 'page')
    return this.attachTo(targetId)
  }

  async newPage(): Promise<string> {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' })
    return this.attachTo(targetId)
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  async evaluate(expression: string, sessionId: string): Promise<any> {
    const asked = { expression, returnByValue: true, awaitPromise: true, userGesture: true }
    const { result } = await this.send('Runtime.evaluate', asked, sessionId)
    return result.value
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  nextEvent(method: string, fits: (params: any) => boolean = () => true): Promise<any> {
    return new Promise((resolve) => {
      this.onEvent((message) => {
        if (message.method === method && fits(message.params)) resolve(message.params)
      })
    })
  }

  /** CDP session of a target. */
  async attachTo(targetId: string): Promise<string> {
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true })
    return sessionId
  }
}
