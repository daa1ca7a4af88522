import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { liveViewUpgrade } from '@berth/contract/agent/agent-upgrades.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import type { FastifyInstance } from 'fastify'
import { publicUrlOf } from '../../access/public-url.ts'
import type { SessionAccess } from '../../access/session-access.ts'
import { readSessionCredentials } from '../../access/session-credentials.ts'
import { sessionRoot } from '../../features/sessions/records/session-urls.ts'
import { mountPageScript, pageScript } from '../../host/bundles/page-script.ts'
import { isReadOnlyView } from './live-view-query.ts'
import { style } from './live-view-style.ts'

interface LiveViewPageOptions {
  readonly access: SessionAccess
  readonly publicUrl: string | undefined
}

const entry = join(import.meta.dirname, '../../../../live-view/src/page.ts')
const styleHash = createHash('sha256').update(style).digest('base64')

const readScript = pageScript(entry)

/** Serves the page that shows a session: `/s/{session}/live?jwt=…`. Its WebSocket has the same address. */
export function mountLiveViewPage(app: FastifyInstance, { access, publicUrl }: LiveViewPageOptions): void {
  const path = `${sessionRoot}/:session${liveViewUpgrade.path}`

  app.get(path, async (request, reply) => {
    const { session: named } = request.params as { session: string }
    const { isReadOnly } = await access.admitViewer(readSessionCredentials(request.raw), named)
    const isWithoutInput = isReadOnlyView(request.url) || isReadOnly
    const { name } = await readScript()
    // Relative to this page, so that it also works behind a proxy that changes paths.
    const folder = pathOf(request.url).endsWith('/') ? '' : `${liveViewUpgrade.path.slice(1)}/`
    const { host } = new URL(publicUrlOf(request.raw, publicUrl))
    return reply
      .headers({
        'content-security-policy': policyFor(host),
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
      })
      .type('text/html; charset=utf-8')
      .send(pageWith(`${folder}${name}`, isWithoutInput))
  })

  mountPageScript(app, path, readScript)
}

/**
 * Any page may embed it: `frame-ancestors *` would exclude those of apps and files. Firefox does not include WebSockets
 * in `'self'`.
 */
function policyFor(host: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'sha256-${styleHash}'`,
    'img-src data: blob:',
    `connect-src 'self' ws://${host} wss://${host}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
}

function pageWith(scriptUrl: string, isReadOnly: boolean): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content">
<title>Live view</title>
<style>${style}</style>
</head>
<body data-read-only="${isReadOnly}" data-state="connecting">
<div id="screen"></div>
<textarea id="keyboard" aria-label="Keyboard of the session" autocapitalize="off" autocomplete="off" autocorrect="off" spellcheck="false" tabindex="-1"></textarea>
<button id="show-keyboard" type="button" aria-label="Show the keyboard">⌨</button>
<p id="status" role="status">Connecting…</p>
<noscript>The live view needs JavaScript.</noscript>
<script type="module" src="${scriptUrl}"></script>
</body>
</html>
`
}
