import { readdir, readFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { StaticResponse } from '@berth/runtime/http/static-response.ts'
import type { FastifyInstance } from 'fastify'

/** Scalar for browsers, as its package contains it: one module, and parts that it loads on demand. */
const folder = join(dirname(fileURLToPath(import.meta.resolve('@scalar/api-reference'))), 'browser')
const path = '/docs/assets/scalar'
const script = 'text/javascript; charset=utf-8'

export const libraryPath = `${path}/standalone.esm.js`

/** Serves the scripts of Scalar. Each is read and compressed when it is first asked for. */
export function mountReferenceLibrary(app: FastifyInstance): void {
  const responses = new Map<string, Promise<StaticResponse>>()
  let names: Promise<ReadonlySet<string>> | undefined
  app.get(`${path}/*`, async (request, reply) => {
    const { '*': name } = request.params as { '*': string }
    names ??= listScripts()
    if (!(await names).has(name)) throw new BerthError('route_not_found', { method: 'GET', path: pathOf(request.url) })
    const response =
      responses.get(name) ?? readFile(join(folder, name)).then((code) => new StaticResponse(script, code))
    responses.set(name, response)
    reply.header('x-content-type-options', 'nosniff')
    return (await response).send(request, reply)
  })
}

async function listScripts(): Promise<ReadonlySet<string>> {
  const files = await readdir(folder, { recursive: true })
  return new Set(files.filter((file) => extname(file) === '.js'))
}
