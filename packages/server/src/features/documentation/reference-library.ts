import { readdir, readFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BerthError } from '@berth/contract/errors.ts'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import { memoize } from '@berth/runtime/async/memoize.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { StaticResponse } from '@berth/runtime/http/static-response.ts'
import type { FastifyInstance } from 'fastify'

/** The browser build of Scalar from its package: one module, and chunks that it loads on demand. */
const folder = join(dirname(fileURLToPath(import.meta.resolve('@scalar/api-reference'))), 'browser')
const path = '/docs/assets/scalar'
const script = 'text/javascript; charset=utf-8'
/** More than the package contains. */
const maxScripts = 1_000

export const libraryPath = `${path}/standalone.esm.js`

/** Serves the scripts of Scalar. Each is read and compressed at its first request. */
export function mountReferenceLibrary(app: FastifyInstance): void {
  const responses = new LoadingCache<string, StaticResponse>({ maxEntries: maxScripts })
  const readNames = memoize(listScripts)
  app.get(`${path}/*`, async (request, reply) => {
    const { '*': name } = request.params as { '*': string }
    if (!(await readNames()).has(name))
      throw new BerthError('route_not_found', { method: 'GET', path: pathOf(request.url) })
    const response = await responses.get(
      name,
      async () => new StaticResponse(script, await readFile(join(folder, name))),
    )
    reply.header('x-content-type-options', 'nosniff')
    return response.send(request, reply)
  })
}

async function listScripts(): Promise<ReadonlySet<string>> {
  const files = await readdir(folder, { recursive: true })
  return new Set(files.filter((file) => extname(file) === '.js'))
}
