import { randomUUID } from 'node:crypto'

/**
 * A JSON value for a parameter of one command that must not stay in this process. Strings remain in memory until they
 * are collected, or longer. So the value is never a string: these bytes are written to Chromium and then overwritten.
 */
export class CdpSecret {
  readonly #json: Uint8Array
  readonly #mark: string = randomUUID()

  /** Takes ownership of the bytes of the JSON text. */
  constructor(json: Uint8Array) {
    this.#json = json
  }

  toJSON(): string {
    return this.#mark
  }

  /** The command with the value inserted. The sender overwrites it. */
  putInto(command: string): Buffer {
    const [before, after, ...more] = command.split(JSON.stringify(this.#mark))
    if (before === undefined || after === undefined || more.length > 0)
      throw new Error('the command must contain its secret exactly once')
    return Buffer.concat([Buffer.from(before), this.#json, Buffer.from(after)])
  }

  overwrite(): void {
    this.#json.fill(0)
  }
}
