import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { policyExtensionPort } from '@berth/contract/agent/agent-protocol.ts'
import { http } from '../http/node-http.ts'
import type { ExtensionSet } from './extension-set.ts'

/** Serves extensions that policies install to Chromium and programs of the machine, but not to pages. */
export class PolicyServer {
  readonly #extensions: ExtensionSet
  #server: Server | undefined

  constructor(extensions: ExtensionSet) {
    this.#extensions = extensions
  }

  async start(): Promise<void> {
    if (this.#server) return
    const server = http.createServer((request, response) => this.#answer(request, response))
    server.listen(policyExtensionPort, '127.0.0.1')
    await once(server, 'listening')
    this.#server = server
  }

  #answer({ method, url = '', headers, socket }: IncomingMessage, response: ServerResponse): void {
    if (isOfPage(headers)) return void socket.resetAndDestroy()
    const [, id = '', file] = /^\/extensions\/([a-p]{32})\/(update\.xml|extension\.crx)(?:\?|$)/.exec(url) ?? []
    const extension = this.#extensions.policyExtension(id)
    if (method !== 'GET' || !extension?.policy) {
      response.writeHead(404).end()
      return
    }
    const { policy, folder } = extension
    if (file === 'update.xml') {
      response.writeHead(200, { 'content-type': 'text/xml' }).end(updateManifest(id, policy.version))
      return
    }
    response.writeHead(200, { 'content-type': 'application/x-chrome-extension' })
    pipeline(createReadStream(join(folder, policy.crx)), response).catch(() => response.destroy())
  }
}

/**
 * Chromium marks the requests of pages, which cannot change the mark. Its own requests have no site and are not navigations.
 */
function isOfPage(headers: IncomingHttpHeaders): boolean {
  const { 'sec-fetch-site': site = 'none', 'sec-fetch-mode': mode } = headers
  return site !== 'none' || mode === 'navigate'
}

/** Generated, because the manifest of the archive may name an update server outside the machine. */
function updateManifest(id: string, version: string): string {
  const address = `http://127.0.0.1:${policyExtensionPort}/extensions/${id}/extension.crx`
  return `<?xml version="1.0" encoding="UTF-8"?>
<gupdate xmlns="http://www.google.com/update2/response" protocol="2.0">
  <app appid="${id}"><updatecheck codebase="${address}" version="${version}"/></app>
</gupdate>
`
}
