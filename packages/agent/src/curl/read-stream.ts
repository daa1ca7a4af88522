import { setImmediate as immediate } from 'node:timers/promises'

/** Chromium's response to `IO.read`. */
export interface StreamPart {
  readonly data: string
  readonly base64Encoded?: boolean
  readonly eof: boolean
}

interface ReadStreamOptions {
  readonly read: (sizeBytes: number) => Promise<StreamPart>
  /** Whether each byte has to come as soon as it is there. */
  readonly isLive: boolean
}

/*
 * Chromium answers a read when it has as many bytes as were asked for, at the end of the stream, and, if another read
 * waits behind it, mostly when some bytes have come. So two wait at a time; and where nothing may be held back, many of
 * one byte each.
 */
const steady = { sizeBytes: 64 * 1024, reads: 2 }
const live = { sizeBytes: 1, reads: 256 }

/** Everything in the stream. There are never more reads on the way than fit: a slow reader holds the sender up. */
export async function* readStream({ read, isLive }: ReadStreamOptions): AsyncGenerator<Buffer> {
  const { sizeBytes, reads } = isLive ? live : steady
  const arrived: StreamPart[] = []
  let failure: Error | undefined
  let change = Promise.withResolvers<void>()
  const ask = () => {
    const answered = read(sizeBytes).then(
      (part) => void arrived.push(part),
      (error: Error) => {
        failure ??= error
      },
    )
    void answered.then(() => change.resolve())
  }
  for (let asked = 0; asked < reads; asked++) ask()
  for (;;) {
    await change.promise
    change = Promise.withResolvers()
    await immediate() // What has come together goes on together.
    const parts = arrived.splice(0)
    const bytes = Buffer.concat(
      parts.map(({ data, base64Encoded }) => Buffer.from(data, base64Encoded ? 'base64' : 'utf8')),
    )
    if (bytes.length > 0) yield bytes
    if (parts.some(({ eof }) => eof)) return
    if (failure) throw failure
    for (const _part of parts) ask()
  }
}
