import { createHash } from 'node:crypto'
import { BerthError } from '@berth/contract/errors.ts'
import { memoize } from '@berth/runtime/async/memoize.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import type { FastifyInstance } from 'fastify'
import { bundleForBrowsers } from './program-bundle.ts'

interface PageScript {
  /** Changes with its content. */
  readonly name: string
  readonly code: Buffer
}

/** Returns a function that reads the program of a page, which is bundled when the page is first opened. */
export function pageScript(entry: string): () => Promise<PageScript> {
  return memoize(async () => {
    const code = await bundleForBrowsers(entry)
    return { name: `${createHash('sha256').update(code).digest('hex').slice(0, 16)}.js`, code }
  })
}

/** Serves the program below the path of its page. It is the same for everyone, so it needs no token. */
export function mountPageScript(app: FastifyInstance, path: string, readScript: () => Promise<PageScript>): void {
  app.get(`${path}/:file`, async (request, reply) => {
    const { file } = request.params as { file: string }
    const { name, code } = await readScript()
    if (file !== name) throw new BerthError('route_not_found', { method: 'GET', path: pathOf(request.url) })
    return reply
      .headers({ 'cache-control': 'public, max-age=31536000, immutable', 'x-content-type-options': 'nosniff' })
      .type('text/javascript; charset=utf-8')
      .send(code)
  })
}
