import { type MachineId, newId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { settleAll } from '@berth/runtime/async/settle-all.ts'
import type { Driver, Machine } from '../../../drivers/driver.ts'
import type { EgressLink } from '../../../egress-link/egress-link.ts'
import { MachineOperations } from './machine-operations.ts'
import { inMachine } from './paths.ts'
import { runProgram } from './run-program.ts'

const startLimitMilliseconds = 45_000

interface AppMachineOptions {
  readonly driver: Driver
  readonly egressLink: EgressLink
  readonly clock: Clock
}

/** A machine without a browser, with the isolation, the limits and the way out of every other. */
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

  /** After a rejection nothing of the machine is left. */
  static async start(options: AppMachineOptions, caller: AbortSignal): Promise<AppMachine> {
    const { driver, egressLink, clock } = options
    const signal = AbortSignal.any([caller, AbortSignal.timeout(startLimitMilliseconds)])
    const id = newId('machine', clock.now())
    const machine = await driver.start({ ...spec, id }, signal)
    const started = new AppMachine(options, machine)
    try {
      // Named by its machine, it reaches berth as any other client does, with the key that it is given.
      await egressLink.openRoute(machine, { session_id: id, private_hosts: [], routes: [] })
      const linked = `mkdir -p ${inMachine.app} ${inMachine.programs} && ln -s ${inMachine.node} ${inMachine.programs}/node`
      await runProgram(started.operations, { command: '/bin/sh', args: ['-c', linked] }, () => {}, signal)
      return started
    } catch (error) {
      await started.stop()
      throw error
    }
  }

  /** How many of its processes the kernel has ended for lack of memory. */
  countMemoryKills(): Promise<number> {
    return this.#options.driver.countMemoryKills(this.id).catch(() => 0)
  }

  async stop(): Promise<void> {
    const { driver, egressLink } = this.#options
    await settleAll([driver.stop(this.id), egressLink.closeRoute(this.id)])
  }
}

const spec = {
  isApp: true,
  headless: true,
  stealth: false,
  gpu: false,
  kioskMode: false,
  viewport: { width: 1280, height: 800, refresh_rate: 60 },
  memory: '2GiB',
  chromePolicy: {},
  awaitsProfile: false,
  awaitsExtensions: false,
} as const
