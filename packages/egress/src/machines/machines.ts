import { readFileSync } from 'node:fs'
import type { EgressRoute } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import { KeyedQueue } from '@berth/runtime/async/keyed-queue.ts'
import type { EgressLogger } from '../egress-logger.ts'
import type { Guard } from '../guard/guard.ts'
import type { NameResolver } from '../names/name-resolver.ts'
import { Machine } from './machine.ts'

/** A browser opens some hundreds, including event streams and WebSockets. */
const maxConnectionsOfMachine = 1_024
const minConnectionsOfMachine = 64
/** A connection needs a file descriptor on either side, and one more while it is opened. */
const filesOfConnection = 3
const otherFiles = 128

interface MachinesOptions {
  readonly guard: Guard
  /** Creates the name resolver of one machine. */
  readonly createNames: () => Pick<NameResolver, 'lookup' | 'addresses' | 'close'>
  readonly logger: EgressLogger
}

/** The machines that this process serves. */
export class Machines {
  readonly #options: MachinesOptions
  readonly #machines = new Map<string, Machine>()
  readonly #maxFiles = readMaxFiles()
  /** Changes of one machine run in sequence. Changes of other machines do not wait for them. */
  readonly #changes = new KeyedQueue<string>()

  constructor(options: MachinesOptions) {
    this.#options = options
  }

  get ids(): readonly string[] {
    return [...this.#machines.keys()]
  }

  /** Starts serving the machine, or applies a changed route. */
  async put(id: string, route: EgressRoute): Promise<void> {
    const { settings, gently } = route
    // Waits outside the queue, so that other changes are not delayed.
    if (gently?.after_request_to !== undefined)
      await this.#machines.get(id)?.waitForConnectionTo(gently.after_request_to)
    return this.#changes.run(id, async () => {
      const known = this.#machines.get(id)
      const machine = known ?? this.#createMachine(settings)
      try {
        known?.setSettings(settings, gently !== undefined)
        await machine.listen(route)
      } catch (error) {
        if (!known) await machine.close()
        throw error
      }
      this.#machines.set(id, machine)
      this.#shareFiles()
    })
  }

  /** Closes the machine's connections and its socket. Does nothing for an unknown machine. */
  delete(id: string): Promise<void> {
    return this.#changes.run(id, async () => {
      await this.#machines.get(id)?.close()
      this.#machines.delete(id)
      this.#shareFiles()
    })
  }

  async close(): Promise<void> {
    await Promise.all(this.ids.map((id) => this.delete(id)))
  }

  #createMachine(settings: EgressSettings): Machine {
    const { guard, createNames, logger } = this.#options
    return new Machine({ settings, guard, names: createNames(), logger })
  }

  /** Divides the available file descriptors between the machines. */
  #shareFiles(): void {
    const count = Math.floor((this.#maxFiles - otherFiles) / filesOfConnection / Math.max(this.#machines.size, 1))
    const limit = Math.min(Math.max(count, minConnectionsOfMachine), maxConnectionsOfMachine)
    for (const machine of this.#machines.values()) machine.setMaxConnections(limit)
  }
}

/** The limit of file descriptors of this process. */
function readMaxFiles(): number {
  const [, soft = ''] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return Number(soft) || 1_024
}
