import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { idPattern } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import type { FastifyInstance } from 'fastify'
import { publicUrlOf } from '../../../access/public-url.ts'
import { mountPageScript, pageScript } from '../../../host/bundles/page-script.ts'
import { hostedLoginPath } from './hosted-path.ts'
import { style } from './hosted-style.ts'

const entry = join(import.meta.dirname, '../../../../../login-page/src/page.ts')
const styleHash = createHash('sha256').update(style).digest('base64')

const readScript = pageScript(entry)

/**
 * Serves the page where a person completes a login. It is the same for everyone: the page loads its content with the
 * code in its address, which the server does not read here.
 */
export function mountHostedPage(app: FastifyInstance, { publicUrl }: { readonly publicUrl: string | undefined }): void {
  const path = `${hostedLoginPath}/:connection`

  app.get(path, async (request, reply) => {
    const { connection } = request.params as { connection: string }
    if (!idPattern.test(connection))
      throw new BerthError('route_not_found', { method: 'GET', path: pathOf(request.url) })
    const { name } = await readScript()
    const { origin } = new URL(publicUrlOf(request.raw, publicUrl))
    return reply
      .headers({
        'content-security-policy': policyFor(origin),
        'cache-control': 'no-store',
        // The address of the page contains its code.
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
      })
      .type('text/html; charset=utf-8')
      .send(pageWith(`${connection}/${name}`))
  })

  mountPageScript(app, path, readScript)
}

/** The live view is at the address where callers reach berth. */
function policyFor(origin: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'sha256-${styleHash}'`,
    "connect-src 'self'",
    `frame-src 'self' ${origin}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

function pageWith(scriptUrl: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content">
<meta name="robots" content="noindex">
<title>Log in</title>
<style>${style}</style>
</head>
<body>
<main aria-busy="true">
<h1>Log in</h1>
<p class="waiting" role="status">Opening …</p>
<noscript>This page needs JavaScript.</noscript>
</main>
<script type="module" src="${scriptUrl}"></script>
</body>
</html>
`
}
