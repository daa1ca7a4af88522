import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { publicUrlOf } from '../../access/public-url.ts'
import { themeHash, themeScript } from '../../host/bundles/page-theme.ts'
import type { BundledSite } from '../../host/bundles/program-bundle.ts'
import { mountSiteAssets, siteReader } from '../../host/bundles/site-assets.ts'

const entry = join(import.meta.dirname, '../../../../dashboard/src/main.tsx')
const pagePath = '/dashboard'
const assetsPath = `${pagePath}/assets`

/** Bundled when the dashboard is first opened. */
const readSite = siteReader(entry)

/** Serves the dashboard: one page for all of its addresses, and its files, which are the same for everyone. */
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

  mountSiteAssets(app, assetsPath, readSite)
}

/**
 * Only files of the dashboard itself are permitted as scripts and styles, because other paths of this origin serve
 * content of sessions. The terminal creates style sheets and attributes; the sheets have the nonce.
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
