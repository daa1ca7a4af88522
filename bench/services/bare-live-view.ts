import { createReadStream } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createWebSocketStream, WebSocketServer } from 'ws'

const novnc = fileURLToPath(new URL('..', import.meta.resolve('@novnc/novnc')))

const page = `<!doctype html><style>html, body { margin: 0; height: 100%; overflow: hidden } #screen { position: fixed; inset: 0 }</style>
<body><div id="screen"></div><script type="module">
  import RFB from '/novnc/core/rfb.js'
  const rfb = new RFB(document.getElementById('screen'), location.href.replace('http', 'ws'), { shared: true })
  rfb.scaleViewport = true
  rfb.qualityLevel = 8
  rfb.addEventListener('connect', () => rfb.focus())
</script>`

/** noVNC and a bare VNC server, with nothing between them but a WebSocket. */
export async function serveBareLiveView(vncSocket: string): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const isScript = pathname.startsWith('/novnc/')
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    if (!isScript) return void response.end(page)
    createReadStream(join(novnc, pathname.slice('/novnc/'.length)))
      .on('error', () => response.destroy())
      .pipe(response)
  })
  new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket) => {
    const viewer = createWebSocketStream(socket).on('error', () => {})
    const display = connect(vncSocket).on('error', () => viewer.destroy())
    display.setNoDelay(true)
    display.on('close', () => viewer.destroy())
    viewer.on('close', () => display.destroy())
    display.pipe(viewer).pipe(display)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: () => close(server),
  }
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections()
  server.close()
}
