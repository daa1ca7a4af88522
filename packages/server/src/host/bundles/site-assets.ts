import { extname } from 'node:path'
import { BerthError } from '@berth/contract/errors.ts'
import { memoize } from '@berth/runtime/async/memoize.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { StaticResponse } from '@berth/runtime/http/static-response.ts'
import type { FastifyInstance } from 'fastify'
import { type BundledSite, bundleSite } from './program-bundle.ts'

const forever = 'public, max-age=31536000, immutable'

const mediaTypes: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

interface Site {
  readonly site: BundledSite
  readonly assets: ReadonlyMap<string, StaticResponse>
}

/** Returns a function that reads a site, which is bundled when it is first opened. */
export function siteReader(entry: string): () => Promise<Site> {
  return memoize(async () => {
    const site = await bundleSite(entry)
    const assets = site.files.map(({ name, code }) => {
      const type = mediaTypes[extname(name)] ?? 'application/octet-stream'
      return [name, new StaticResponse(type, Buffer.from(code), forever)] as const
    })
    return { site, assets: new Map(assets) }
  })
}

/** Serves the files of a site, which are the same for everyone. */
export function mountSiteAssets(app: FastifyInstance, path: string, readSite: () => Promise<Site>): void {
  app.get(`${path}/:file`, async (request, reply) => {
    const { file } = request.params as { file: string }
    const asset = (await readSite()).assets.get(file)
    if (!asset) throw new BerthError('route_not_found', { method: 'GET', path: pathOf(request.url) })
    reply.header('x-content-type-options', 'nosniff')
    return asset.send(request, reply)
  })
}
