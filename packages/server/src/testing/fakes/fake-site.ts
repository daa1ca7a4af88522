import type { IncomingMessage, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import type { MachineSpec } from '../../drivers/driver.ts'
import type { Visit } from '../../features/config-registry/analysis.ts'
import type { TestServer } from '../server-test.ts'

/** What a browser sees of the site. `hang` waits until its session ends. */
type Sight = Partial<Visit> | 'hang'

const page: Visit = {
  status: 200,
  failure: null,
  isPage: true,
  title: 'Harbour',
  text: 'The harbour opened in the spring. '.repeat(60),
  challenges: [],
  hasPasswordField: false,
  media: 0,
}

const view = {
  title: 'Harbour',
  text: 'The harbour',
  elements: ['a: Prices', 'input: q'],
}

/** A site that the agents of fake machines report. */
export class FakeSite {
  /** Every visit, in order. */
  readonly visits: { readonly headless: boolean; readonly stealth: boolean; readonly proxy: string }[] = []
  /** The code of the model's steps. */
  readonly steps: string[] = []
  /** What a browser sees, with a proxy of the country or a direct connection. */
  see: (browser: { readonly headless: boolean; readonly stealth: boolean; readonly proxy: string }) => Sight =
    () => ({})
  robots: { readonly status: number; readonly body: string } = { status: 404, body: '' }
  /** The URL to which the steps of a model lead, if any. */
  leadsTo: string | undefined
  #url = ''
  readonly #server: TestServer
  #onVisit = Promise.withResolvers<void>()

  constructor(server: TestServer) {
    this.#server = server
    server.host.operationsOf = (spec) => (request, response) => void this.#operate(spec, request, response)
  }

  /** Resolves at the next visit. */
  untilVisited(): Promise<void> {
    return this.#onVisit.promise
  }

  async #operate(spec: MachineSpec, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = (await json(request)) as { code?: string }
    const answer = (body: unknown) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (request.url?.endsWith('/curl')) return answer({ ...this.robots, headers: {}, duration_ms: 1 })
    const { code = '' } = asked
    if (code.includes('elements: described')) return answer({ success: true, result: { ...view, url: this.#url } })
    if (code.includes('done: true')) {
      this.steps.push(code)
      this.#url = this.leadsTo ?? this.#url
      return answer({ success: true, result: { done: true, reason: '' } })
    }
    const { headless, stealth, id } = spec
    const browser = { headless, stealth, proxy: await this.#proxyOf(id) }
    this.visits.push(browser)
    this.#url = JSON.parse(/page\.goto\(("[^"]*")/.exec(code)?.[1] ?? '""')
    this.#onVisit.resolve()
    this.#onVisit = Promise.withResolvers<void>()
    const sight = this.see(browser)
    if (sight !== 'hang') answer({ success: true, result: { ...page, ...sight } })
  }

  async #proxyOf(machineId: MachineSpec['id']): Promise<string> {
    const { database } = this.#server
    const session = await database
      .selectFrom('sessions')
      .select('proxy')
      .where('machine_id', '=', machineId)
      .executeTakeFirstOrThrow()
    if (!('id' in session.proxy)) return session.proxy.mode
    const { type, config } = await database
      .selectFrom('proxies')
      .select(['type', 'config'])
      .where('id', '=', session.proxy.id)
      .executeTakeFirstOrThrow()
    return `${type} ${config.country ?? 'anywhere'}`
  }
}
