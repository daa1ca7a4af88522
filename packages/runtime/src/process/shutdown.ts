import type { Logger } from './logger.ts'

type Close = () => Promise<void> | void

/** Closes everything that a process opened, once and in reverse order. */
export class Shutdown {
  readonly #closers: { name: string; close: Close }[] = []
  readonly #logger: Logger
  #closing: Promise<void> | undefined

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Registers something that was just opened. */
  add(name: string, close: Close): void {
    this.#closers.push({ name, close })
  }

  get isClosing(): boolean {
    return this.#closing !== undefined
  }

  /** A failure to close one does not prevent the others from closing. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll()
    return this.#closing
  }

  async #closeAll(): Promise<void> {
    for (const { name, close } of this.#closers.toReversed()) {
      try {
        await close()
      } catch (error) {
        this.#logger.error({ err: error }, `could not close ${name}`)
      }
    }
  }

  /** Closes on SIGTERM and SIGINT, then exits. Exits at once on a second signal or after `limitMilliseconds`. */
  onSignals(limitMilliseconds: number): void {
    const stop = (signal: NodeJS.Signals) => {
      if (this.#closing) process.exit(1)
      this.#logger.info(`stopping on ${signal}`)
      setTimeout(() => {
        this.#logger.error('did not stop in time')
        process.exit(1)
      }, limitMilliseconds).unref()
      this.close().then(
        () => process.exit(0),
        () => process.exit(1),
      )
    }
    process.on('SIGTERM', stop)
    process.on('SIGINT', stop)
  }
}
