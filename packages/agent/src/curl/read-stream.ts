import { setImmediate as immediate } from 'node:timers/promises'

/** Chromium's response to `IO.read`. */
export interface StreamPart {
  readonly data: string
  readonly base64Encoded?: boolean
  readonly eof: boolean
}

interface ReadStreamOptions {
  readonly read: (sizeBytes: number) => Promise<StreamPart>
  /** Whether each byte must be delivered as soon as it arrives. */
  readonly isLive: boolean
}

/*
 * Chromium answers a read when it has all requested bytes, at the end of the stream, and, if another read is pending,
 * usually when some bytes have arrived. So two reads are pending at a time, and many of one byte each if nothing may be
 * delayed.
 */
const steady = { sizeBytes: 64 * 1024, reads: 2 }
const live = { sizeBytes: 1, reads: 256 }

/** The whole stream. The number of pending reads is limited, so a slow reader slows the sender down. */
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
    await immediate() // Passes on data together that arrived together.
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
