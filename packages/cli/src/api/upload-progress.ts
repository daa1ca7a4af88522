import { Presets, SingleBar } from 'cli-progress'

export type EncodedBody = NonNullable<RequestInit['body']>

/** Smaller uploads end before anybody could see the progress. */
const minShownBytes = 1024 ** 2

/** The bytes of a form or a file; shows a progress bar on a terminal if there are many. */
export function countedBody(content: FormData | Blob, headers: Headers): EncodedBody {
  const total = content instanceof Blob ? content.size : sizeOf(content)
  const encoded = new Response(content)
  const type = content instanceof Blob ? 'application/octet-stream' : encoded.headers.get('content-type')
  if (type) headers.set('content-type', type)
  if (!encoded.body || !process.stderr.isTTY || total < minShownBytes) return content
  const bar = new SingleBar(
    { format: '{bar} {percentage} % of {total} MiB, {eta} s left', stream: process.stderr, clearOnComplete: true },
    Presets.shades_classic,
  )
  bar.start(Math.round(total / 1024 ** 2), 0)
  let sent = 0
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      sent += chunk.length
      bar.update(Math.min(bar.getTotal(), Math.round(sent / 1024 ** 2)))
      controller.enqueue(chunk)
    },
    flush: () => bar.stop(),
  })
  return encoded.body.pipeThrough(count)
}

function sizeOf(form: FormData): number {
  return [...form.values()].reduce((sum, value) => sum + (typeof value === 'string' ? value.length : value.size), 0)
}
