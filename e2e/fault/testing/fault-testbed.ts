import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Berth, type BerthOptions } from '../../testing/berth.ts'
import { HostView } from './holdings.ts'

/** A data folder on which one berth server after another is started, however the previous one ended. */
export class FaultTestbed {
  readonly folder: string
  readonly view: HostView
  #last: Berth | undefined

  private constructor(folder: string, view: HostView) {
    this.folder = folder
    this.view = view
  }

  static async open(parent = tmpdir()): Promise<FaultTestbed> {
    const folder = await mkdtemp(join(parent, 'berth-fault-'))
    return new FaultTestbed(folder, await HostView.of(folder))
  }

  async start(options: Omit<BerthOptions, 'dataFolder'> = {}): Promise<Berth> {
    this.#last = await Berth.start({ ...options, dataFolder: this.folder })
    return this.#last
  }

  /** Stops whatever is left, also after a test that failed half-way. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#last) await this.#end(this.#last)
    await rm(this.folder, { recursive: true, force: true })
  }

  async #end(last: Berth): Promise<void> {
    if (!last.hasEnded) {
      const hasEnded = await last[Symbol.asyncDispose]().then(
        () => true,
        () => false,
      )
      if (hasEnded) return
      await last.signal('SIGKILL')
    }
    // A new server finds what the last one left.
    const next = await Berth.start({ dataFolder: this.folder })
    await next[Symbol.asyncDispose]()
  }
}
