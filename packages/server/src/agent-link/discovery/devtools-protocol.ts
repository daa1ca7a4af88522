import { readFile } from 'node:fs/promises'
import { memoize } from '@berth/runtime/async/memoize.ts'
import { StaticResponse } from '@berth/runtime/http/static-response.ts'

interface ProtocolFile {
  readonly version: { readonly major: string; readonly minor: string }
  readonly domains: readonly unknown[]
}

/**
 * The description of the DevTools protocol, for clients that request it without a token. It comes from the npm package
 * `devtools-protocol`, because no session may respond on behalf of another.
 */
export const devToolsProtocol: () => Promise<StaticResponse> = memoize(read)

async function read(): Promise<StaticResponse> {
  const files = [
    import.meta.resolve('devtools-protocol/json/browser_protocol.json'),
    import.meta.resolve('devtools-protocol/json/js_protocol.json'),
  ]
  const [browser, js] = await Promise.all(files.map(readProtocolFile))
  const document = { version: browser?.version, domains: [...(browser?.domains ?? []), ...(js?.domains ?? [])] }
  return new StaticResponse('application/json; charset=utf-8', Buffer.from(JSON.stringify(document)))
}

async function readProtocolFile(url: string): Promise<ProtocolFile> {
  return JSON.parse(await readFile(new URL(url), 'utf8'))
}
