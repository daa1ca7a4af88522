import { type MachineId, newId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { settleAll } from '@berth/runtime/async/settle-all.ts'
import { appMachineSpec } from '../../../drivers/app-machine-spec.ts'
import type { Driver, Machine } from '../../../drivers/driver.ts'
import { appEgressSettings } from '../../../egress-link/app-egress-settings.ts'
import type { EgressLink } from '../../../egress-link/egress-link.ts'
import { MachineOperations } from './machine-operations.ts'

const startLimitMilliseconds = 45_000

/** Shown to the owner of a build or an invocation. */
export const waitsForRoom = 'No host has room for the machine of the app now: waiting until one has.'

export function isLackOfRoom(error: unknown): error is BerthError {
  return error instanceof BerthError && error.code === 'capacity_exhausted'
}

/** The machines that were started in advance. */
export interface MachineReserve {
  /** Marks a start as in progress until the disposal. */
  noteCreate(kind: 'app'): Disposable
  take(kind: 'app'): Promise<Machine | undefined>
  /** Releases its machines to make room, and returns whether there were any. */
  makeRoom(): Promise<boolean>
}

interface AppMachineOptions {
  readonly driver: Driver
  readonly egressLink: EgressLink
  readonly reserve: MachineReserve
  readonly clock: Clock
}

/** A machine without a browser, with the same isolation, limits and network as others. */
export class AppMachine {
  readonly id: MachineId
  readonly operations: MachineOperations
  readonly ended: Promise<void>
  readonly #options: AppMachineOptions

  private constructor(options: AppMachineOptions, machine: Machine) {
    this.#options = options
    this.id = machine.id
    this.operations = new MachineOperations(machine)
    this.ended = machine.ended
  }

  /** Claims a machine of the reserve or starts one. After a rejection, nothing of the machine is left. */
  static async start(options: AppMachineOptions, caller: AbortSignal): Promise<AppMachine> {
    const { reserve } = options
    using _create = reserve.noteCreate('app')
    const ready = await reserve.take('app')
    if (!ready) return AppMachine.#startCold(options, caller)
    const taken = new AppMachine(options, ready)
    if (!caller.aborted) return taken
    await taken.stop()
    throw caller.reason
  }

  static async #startCold(options: AppMachineOptions, caller: AbortSignal): Promise<AppMachine> {
    const { driver, egressLink, reserve, clock } = options
    const signal = AbortSignal.any([caller, AbortSignal.timeout(startLimitMilliseconds)])
    const id = newId('machine', clock.now())
    const start = () => driver.start(appMachineSpec(id), signal)
    const machine = await start().catch(async (error: unknown) => {
      if (isLackOfRoom(error) && (await reserve.makeRoom())) return start()
      throw error
    })
    const started = new AppMachine(options, machine)
    try {
      await egressLink.openRoute(machine, appEgressSettings(id))
      return started
    } catch (error) {
      await started.stop()
      throw error
    }
  }

  /** How many of its processes the kernel killed for lack of memory. */
  countMemoryKills(): Promise<number> {
    return this.#options.driver.countMemoryKills(this.id).catch(() => 0)
  }

  async stop(): Promise<void> {
    const { driver, egressLink } = this.#options
    await settleAll([driver.stop(this.id), egressLink.closeRoute(this.id)])
  }
}
