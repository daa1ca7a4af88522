import { StringDecoder } from 'node:string_decoder'

export type Channel = 'stdout' | 'stderr'

/** Captures this process's output to the console and the standard streams, which the code considers its own. */
export function captureOutput(take: (channel: Channel, text: string) => void): void {
  for (const channel of ['stdout', 'stderr'] as const) {
    const decoder = new StringDecoder('utf8')
    // The console writes there too, already as text.
    process[channel].write = (chunk: Uint8Array | string, encoding?: unknown, written?: unknown) => {
      take(channel, typeof chunk === 'string' ? chunk : decoder.write(Buffer.from(chunk)))
      const callback = typeof encoding === 'function' ? encoding : written
      if (typeof callback === 'function') process.nextTick(callback as () => void)
      return true
    }
  }
}
