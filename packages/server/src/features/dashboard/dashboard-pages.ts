import { createHash, randomBytes } from 'node:crypto'
import { extname, join } from 'node:path'
import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { StaticResponse } from '@berth/runtime/http/static-response.ts'
import type { FastifyInstance } from 'fastify'
import { publicUrlOf } from '../../access/public-url.ts'
import { type BundledSite, bundleSite } from '../../host/program-bundle.ts'

const entry = join(import.meta.dirname, '../../../../dashboard/src/main.tsx')
const pagePath = '/dashboard'
const assetsPath = `${pagePath}/assets`
const forever = 'public, max-age=31536000, immutable'
const mediaTypes: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}
/** Applied before the first paint. Its hash is in the policy of the page. */
const themeScript =
  "document.documentElement.dataset.theme=localStorage.getItem('berth.theme')??(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light')"
const themeHash = createHash('sha256').update(themeScript).digest('base64')

interface Site {
  readonly site: BundledSite
  readonly assets: ReadonlyMap<string, StaticResponse>
}

let built: Promise<Site> | undefined

/** Bundled when somebody opens the dashboard for the first time. */
function readSite(): Promise<Site> {
  built ??= bundleSite(entry).then(
    (site) => ({
      site,
      assets: new Map(
        site.files.map(({ name, code }) => {
          const type = mediaTypes[extname(name)] ?? 'application/octet-stream'
          return [name, new StaticResponse(type, Buffer.from(code), forever)]
        }),
      ),
    }),
    (error: unknown) => {
      built = undefined
      throw error
    },
  )
  return built
}

/** Serves the dashboard: one page for all of its addresses, and its files, which are the same for everybody. */
export function mountDashboardPages(app: FastifyInstance, options: { readonly publicUrl: string | undefined }): void {
  for (const path of [pagePath, `${pagePath}/*`]) {
    app.get(path, async (request, reply) => {
      const { site } = await readSite()
      const nonce = randomBytes(16).toString('base64url')
      const { host } = new URL(publicUrlOf(request.raw, options.publicUrl))
      return reply
        .headers({
          'content-security-policy': policyFor(host, nonce),
          'cache-control': 'no-store',
          'referrer-policy': 'no-referrer',
          'x-content-type-options': 'nosniff',
          'x-frame-options': 'DENY',
          'cross-origin-opener-policy': 'same-origin',
        })
        .type('text/html; charset=utf-8')
        .send(pageWith(site, nonce))
    })
  }

  app.get(`${assetsPath}/:file`, async (request, reply) => {
    const { file } = request.params as { file: string }
    const asset = (await readSite()).assets.get(file)
    if (!asset) throw new BerthError('route_not_found', { method: 'GET', path: pathOf(request.url) })
    reply.header('x-content-type-options', 'nosniff')
    return asset.send(request, reply)
  })
}

/**
 * Only files of the dashboard itself are scripts and styles: other paths of this origin serve what sessions have
 * written. The terminal makes style sheets and attributes of its own; the
 * sheets have the nonce.
 */
function policyFor(host: string, nonce: string): string {
  return [
    "default-src 'none'",
    `script-src ${host}${assetsPath}/ 'sha256-${themeHash}'`,
    `style-src ${host}${assetsPath}/ 'nonce-${nonce}'`,
    "style-src-attr 'unsafe-inline'",
    'img-src blob: data:',
    "media-src 'self' blob:",
    "connect-src 'self'",
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

function pageWith({ scripts, style }: BundledSite, nonce: string): string {
  const [first, ...others] = scripts.map((name) => `${assetsPath}/${name}`)
  const preloads = others.map((path) => `<link rel="modulepreload" href="${path}">\n`).join('')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="csp-nonce" nonce="${nonce}">
<title>berth</title>
<link rel="icon" href="data:,">
<script>${themeScript}</script>
<link rel="stylesheet" href="${assetsPath}/${style}">
${preloads}<script type="module" src="${first}"></script>
</head>
<body>
<div id="root"></div>
<noscript>The dashboard needs JavaScript.</noscript>
</body>
</html>
`
}
