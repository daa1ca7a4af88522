import type { ServerResponse } from 'node:http'
import { browserPage } from '../../pages.ts'
import type { BenchContext } from '../measurement.ts'
import { type OpenPage, timeInterleaved, withPages } from './in-session.ts'

const requests = 1000
const mebibyte = 1024 * 1024
const downloadMebibytes = 1024
const piece = Buffer.alloc(mebibyte)

export const requestsName = `${requests} small requests, one after the other`
export const downloadName = `download of ${downloadMebibytes} MiB`

/** Measures how fast pages load from a server on this host, as timed by the page. */
export async function measureNetwork(context: BenchContext): Promise<void> {
  const { pages, figures, rounds } = context
  pages.serve('/download', (_request, response) => sendDownload(response))
  await withPages(context, browserPage(pages), async (open) => {
    const requestTimes = await timeInterleaved(open, { turns: Math.min(rounds, 5), perTurn: 1 }, (page) =>
      evaluate(page, `(async () => { for (let i = 0; i < ${requests}; i++) await (await fetch('/script')).text() })()`),
    )
    for (const [{ service }, samples] of requestTimes) figures.add(service.name, requestsName, 'ms', samples)

    const downloadTimes = await timeInterleaved(open, { turns: Math.min(rounds, 3), perTurn: 1 }, (page) =>
      evaluate(page, `fetch('/download').then(({ body }) => body.pipeTo(new WritableStream()))`),
    )
    for (const [{ service }, samples] of downloadTimes) {
      const rates = samples.map((milliseconds) => (downloadMebibytes / milliseconds) * 1000)
      figures.add(service.name, downloadName, 'MiB/s', rates)
    }
  })
}

function evaluate({ client, page }: OpenPage, expression: string): Promise<unknown> {
  return client.send('Runtime.evaluate', { expression, awaitPromise: true }, page)
}

function sendDownload(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' })
  let left = downloadMebibytes
  const send = () => {
    while (left > 0) {
      left -= 1
      if (!response.write(piece)) {
        response.once('drain', send)
        return
      }
    }
    response.end()
  }
  send()
}
