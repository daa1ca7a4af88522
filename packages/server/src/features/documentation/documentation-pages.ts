import { join } from 'node:path'
import { BerthError } from '@berth/contract/errors.ts'
import { memoize } from '@berth/runtime/async/memoize.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { StaticResponse } from '@berth/runtime/http/static-response.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { publicUrlOf } from '../../access/public-url.ts'
import { themeHash } from '../../host/bundles/page-theme.ts'
import { mountSiteAssets, siteReader } from '../../host/bundles/site-assets.ts'
import { guideIndexPage, guidePage, type PageFiles, referencePage } from './documentation-html.ts'
import { readGuides, readPictures } from './guides.ts'
import { libraryPath, mountReferenceLibrary } from './reference-library.ts'

const entry = join(import.meta.dirname, '../../../../dashboard/src/docs/docs.ts')
const pagePath = '/docs'
const assetsPath = `${pagePath}/assets`
const guidesPath = `${pagePath}/guides`
const html = 'text/html; charset=utf-8'

type Send = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

/**
 * Serves the API document for programs (`/openapi.json`, `/spec.json`), and the API reference (`/docs`) and guides for
 * people. The pages load nothing from other hosts.
 */
export function mountDocumentationPages(app: FastifyInstance, { publicUrl }: { publicUrl: string | undefined }): void {
  const readSite = siteReader(entry)
  const readFiles = async (): Promise<PageFiles> => {
    const { site } = await readSite()
    return { script: `${assetsPath}/${site.scripts[0]}`, style: `${assetsPath}/${site.style}` }
  }
  const mountPage = (path: string, send: Send) =>
    app.get(path, async (request, reply) => {
      const { host } = new URL(publicUrlOf(request.raw, publicUrl))
      reply.headers({
        'content-security-policy': policyFor(host),
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'cross-origin-opener-policy': 'same-origin',
      })
      return send(request, reply)
    })

  const answerDocument = once(async () => jsonResponse(await writeDocument()))
  for (const path of ['/openapi.json', '/spec.json']) app.get(path, answerDocument)
  const answerSampled = once(async () => {
    const { withCodeSamples } = await import('./code-samples.ts')
    return jsonResponse(withCodeSamples(await writeDocument()))
  })
  app.get(`${pagePath}/openapi.json`, answerSampled)
  const answerReference = once(async () => {
    const page = referencePage(await readFiles(), { library: libraryPath, document: `${pagePath}/openapi.json` })
    return new StaticResponse(html, Buffer.from(page))
  })
  mountPage(pagePath, answerReference)
  mountSiteAssets(app, assetsPath, readSite)
  mountReferenceLibrary(app)

  const readPages = memoize(async () => {
    const [files, guides] = await Promise.all([readFiles(), readGuides()])
    const pages = guides.map((guide) => [guide.name, guidePage(files, guides, guide)] as const)
    const all = new Map([['', guideIndexPage(files, guides)] as const, ...pages])
    return new Map([...all].map(([name, page]) => [name, new StaticResponse(html, Buffer.from(page))]))
  })
  const answerGuide: Send = async (request, reply) => {
    const { name = '' } = request.params as { name?: string }
    return found(request, (await readPages()).get(name)).send(request, reply)
  }
  mountPage(guidesPath, answerGuide)
  mountPage(`${guidesPath}/:name`, answerGuide)

  const pictures = memoize(async () => {
    const files = await readPictures()
    return new Map([...files].map(([name, content]) => [name, new StaticResponse('image/png', content)]))
  })
  app.get(`${pagePath}/pictures/:file`, async (request, reply) => {
    const { file } = request.params as { file: string }
    const picture = found(request, (await pictures()).get(file))
    reply.header('x-content-type-options', 'nosniff')
    return picture.send(request, reply)
  })
}

/**
 * People enter an API key in the reference. So only files of these pages are permitted as scripts, requests go only to
 * this server, and no other page can embed it. The reference creates style sheets itself.
 */
function policyFor(host: string): string {
  return [
    "default-src 'none'",
    `script-src ${host}${assetsPath}/ 'sha256-${themeHash}'`,
    `style-src ${host}${assetsPath}/ 'unsafe-inline'`,
    "img-src 'self' data: blob:",
    'font-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

/** Created on demand: most servers never need it, and it takes longer than mounting all routes. */
async function writeDocument() {
  const { openApiDocument } = await import('../../openapi/openapi-document.ts')
  return openApiDocument()
}

function jsonResponse(value: object): StaticResponse {
  return new StaticResponse('application/json; charset=utf-8', Buffer.from(JSON.stringify(value)))
}

/** Uses the result of the first request for all later ones. */
function once(make: () => Promise<StaticResponse>): Send {
  const read = memoize(make)
  return async (request, reply) => (await read()).send(request, reply)
}

function found<Value>({ url }: FastifyRequest, value: Value | undefined): Value {
  if (value === undefined) throw new BerthError('route_not_found', { method: 'GET', path: pathOf(url) })
  return value
}
