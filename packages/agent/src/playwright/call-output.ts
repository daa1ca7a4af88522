import type { Channel } from '../script-process/captured-output.ts'
import { maxOutputCharacters } from './executor-messages.ts'

/** The output of a call, up to a limit for each stream. */
export class CallOutput {
  readonly #send: (channel: Channel, text: string) => void
  #isOpen = false
  #left: Record<Channel, number> = { stdout: 0, stderr: 0 }

  constructor(send: (channel: Channel, text: string) => void) {
    this.#send = send
  }

  open(): void {
    this.#isOpen = true
    this.#left = { stdout: maxOutputCharacters, stderr: maxOutputCharacters }
  }

  /** Later output belongs to no call. */
  close(): void {
    this.#isOpen = false
  }

  write(channel: Channel, text: string): void {
    const left = this.#left[channel]
    if (!this.#isOpen || left === 0 || text === '') return
    this.#left[channel] = Math.max(left - text.length, 0)
    this.#send(channel, text.length <= left ? text : `${text.slice(0, left)}\n[further output was left out]\n`)
  }
}
