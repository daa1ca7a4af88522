import { once } from 'node:events'
import { request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { CdpClient } from './cdp-client.ts'
import type { StartedAgent } from './start-agent.ts'

/** Records its mouse and keyboard events. */
const content = `<!doctype html><meta charset="utf-8"><title>page</title>
<body style="margin:0"><textarea id="text" style="position:absolute;left:20px;top:20px;width:500px;height:100px"></textarea>
<script>
  globalThis.log = []
  for (const name of ['keydown', 'keyup', 'mousedown', 'mouseup', 'click', 'dblclick', 'contextmenu', 'wheel'])
    addEventListener(name, (event) => log.push(name + ' ' + (event.key ?? event.button)), true)
</script>`

interface OperationAnswer {
  readonly status: number
  readonly body: Buffer
  /** The parsed body. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly json: any
}

/** A page in front, controlled with mouse and keyboard. */
export class ComputerPage {
  readonly #agent: StartedAgent
  readonly client: CdpClient
  readonly session: string
  /** The position of the page on the screen. */
  readonly origin: { readonly x: number; readonly y: number }

  private constructor(agent: StartedAgent, client: CdpClient, session: string, origin: { x: number; y: number }) {
    this.#agent = agent
    this.client = client
    this.session = session
    this.origin = origin
  }

  static async open(agent: StartedAgent): Promise<ComputerPage> {
    const client = await agent.connect()
    const session = await client.newPage()
    const { frameTree } = await client.send('Page.getFrameTree', {}, session)
    await client.send('Page.setDocumentContent', { frameId: frameTree.frame.id, html: content }, session)
    const [x, y] = await client.evaluate('[screenX, screenY + outerHeight - innerHeight]', session)
    return new ComputerPage(agent, client, session, { x, y })
  }

  /** Converts a point of the page to a point on the screen. */
  at(x: number, y: number): { readonly x: number; readonly y: number } {
    return { x: this.origin.x + x, y: this.origin.y + y }
  }

  async operate(name: string, body?: object, signal?: AbortSignal): Promise<OperationAnswer> {
    const sent = request({
      socketPath: this.#agent.socketPath,
      method: 'POST',
      path: `/operations/computer/${name}`,
      agent: false,
      ...(body && { headers: { 'content-type': 'application/json' } }),
      ...(signal && { signal }),
    })
    sent.end(body && JSON.stringify(body))
    const [response] = await once(sent, 'response')
    const bytes = await buffer(response)
    const isJson = response.headers['content-type']?.startsWith('application/json')
    return { status: response.statusCode, body: bytes, json: isJson ? JSON.parse(bytes.toString()) : undefined }
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  evaluate(expression: string): Promise<any> {
    return this.client.evaluate(expression, this.session)
  }

  /** Resolves with the value once the page has it: input arrives with a delay. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  async becomes(condition: string, value: string): Promise<any> {
    const poll = `new Promise((resolve) => {
      const look = () => ((${condition}) ? resolve(${value}) : setTimeout(look, 5))
      look()
    })`
    return this.evaluate(poll)
  }

  /** The recorded events up to and including the last of these. */
  async takeLog(last: string): Promise<readonly string[]> {
    return this.becomes(`log.at(-1) === ${JSON.stringify(last)}`, 'log.splice(0)')
  }
}
