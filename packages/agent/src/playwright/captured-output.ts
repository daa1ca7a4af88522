import { StringDecoder } from 'node:string_decoder'
import { maxOutputCharacters } from './executor-messages.ts'

type Channel = 'stdout' | 'stderr'

/** Takes what code writes to the console and the standard streams, up to a limit for each call. */
export class CapturedOutput {
  readonly #send: (channel: Channel, text: string) => void
  #isOpen = false
  #left: Record<Channel, number> = { stdout: 0, stderr: 0 }

  constructor(send: (channel: Channel, text: string) => void) {
    this.#send = send
    // The console writes there too, already as text.
    for (const channel of ['stdout', 'stderr'] as const) process[channel].write = this.#writer(channel)
  }

  open(): void {
    this.#isOpen = true
    this.#left = { stdout: maxOutputCharacters, stderr: maxOutputCharacters }
  }

  /** What is written from now on belongs to no call. */
  close(): void {
    this.#isOpen = false
  }

  write(channel: Channel, text: string): void {
    const left = this.#left[channel]
    if (!this.#isOpen || left === 0 || text === '') return
    this.#left[channel] = Math.max(left - text.length, 0)
    this.#send(channel, text.length <= left ? text : `${text.slice(0, left)}\n[more was written and is left out]\n`)
  }

  #writer(channel: Channel): typeof process.stdout.write {
    const decoder = new StringDecoder('utf8')
    return (chunk: Uint8Array | string, encoding?: unknown, written?: unknown) => {
      this.write(channel, typeof chunk === 'string' ? chunk : decoder.write(Buffer.from(chunk)))
      const callback = typeof encoding === 'function' ? encoding : written
      if (typeof callback === 'function') process.nextTick(callback as () => void)
      return true
    }
  }
}
