import { CommandClient } from './command-client.ts'

interface BidiMessage {
  readonly type: 'success' | 'error' | 'event'
  readonly id?: number | null
  readonly method?: string
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly params?: any
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly result?: any
  readonly error?: string
  readonly message?: string
}

/** A bare websocket that speaks WebDriver BiDi. */
export class BidiClient extends CommandClient<BidiMessage> {
  readonly events: BidiMessage[] = []

  static open(url: string): Promise<BidiClient> {
    const client = new BidiClient(url)
    client.onEvent((event) => client.events.push(event))
    return client.opened()
  }

  ask(method: string, params: object = {}): Promise<BidiMessage> {
    return this.command({ method, params })
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  async send(method: string, params: object = {}): Promise<any> {
    const { result, error, message } = await this.ask(method, params)
    if (error) throw new Error(`${error}: ${message}`)
    return result
  }

  /** The first page of the browser. */
  async firstContext(): Promise<string> {
    const { contexts } = await this.send('browsingContext.getTree')
    return contexts[0].context
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  async evaluate(context: string, expression: string): Promise<any> {
    const { result } = await this.send('script.evaluate', { expression, target: { context }, awaitPromise: true })
    return result.value
  }
}
