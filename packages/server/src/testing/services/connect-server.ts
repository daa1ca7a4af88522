import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface ConnectItem {
  readonly id: string
  readonly title: string
  readonly urls?: readonly { readonly href: string; readonly primary?: boolean }[]
  /** Only in the response for this single item. */
  readonly fields?: readonly Readonly<Record<string, string>>[]
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void

/**
 * Implements the lists of vaults and items, and single items, of a 1Password Connect server. Served below a path, as behind a reverse
 * proxy.
 */
export class ConnectServer {
  readonly #server: Server
  readonly tokens = new Set(['good-token'])
  readonly vaults = new Map([
    ['vaulta', 'Work'],
    ['vaultb', 'Home'],
  ])
  readonly items = new Map<string, readonly ConnectItem[]>([
    ['vaulta', [{ id: 'item1', title: 'Mail', urls: [{ href: 'https://mail.example.com/login', primary: true }] }]],
    ['vaultb', [{ id: 'item2', title: 'Bank' }]],
  ])
  /** The requested paths. */
  readonly requests: string[] = []
  /** Replaces the normal responses. */
  answer: Listener | undefined

  private constructor() {
    this.#server = createServer((request, response) => {
      this.requests.push(request.url ?? '')
      if (this.answer) this.answer(request, response)
      else this.#serve(request, response)
    })
  }

  static async open(): Promise<ConnectServer> {
    const connect = new ConnectServer()
    connect.#server.listen(0, '127.0.0.1')
    await once(connect.#server, 'listening')
    return connect
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/connect`
  }

  async close(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  #serve({ url = '', headers }: IncomingMessage, response: ServerResponse): void {
    const send = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const token = headers.authorization?.replace('Bearer ', '') ?? ''
    if (!this.tokens.has(token)) return void send(401, { status: 401, message: 'Invalid token signature' })
    const [, vault] = /^\/connect\/v1\/vaults\/([a-z]+)\/items\/?$/.exec(url) ?? []
    if (vault !== undefined) {
      const items = this.items.get(vault)
      return void (items
        ? send(
            200,
            items.map(({ fields: _fields, ...item }) => ({ ...item, vault: { id: vault }, category: 'LOGIN' })),
          )
        : send(404, {}))
    }
    const [, of = '', id] = /^\/connect\/v1\/vaults\/([a-z]+)\/items\/(\w+)$/.exec(url) ?? []
    const item = this.items.get(of)?.find((known) => known.id === id)
    if (item) return void send(200, { ...item, vault: { id: of }, category: 'LOGIN' })
    if (!/^\/connect\/v1\/vaults\/?$/.test(url)) return void send(404, { status: 404, message: url })
    send(
      200,
      [...this.vaults].map(([id, name]) => ({ id, name, type: 'USER_CREATED', items: 1 })),
    )
  }
}
