import type { DeploymentId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { Semaphore } from '@berth/runtime/async/semaphore.ts'
import { SingleFlight } from '@berth/runtime/async/single-flight.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { AgentRefusal } from '../../../agent-link/command-agent.ts'
import type { AppMachine } from './app-machine.ts'
import { type ActionCall, type AppCode, AppFailure, AppProcess } from './app-process.ts'

/** The limit of one deployment. Further invocations wait. */
const processesAtOnce = 16
/** Processes with the loaded app that wait for the next invocation. */
const maxIdleProcesses = 4
const maxOutputBytes = 4_500_000
const maxAttempts = 3

export interface PreparedMachine {
  readonly machine: AppMachine
  readonly code: AppCode
  /** The process for the first invocation, which is already starting. */
  waiting?: AppProcess | undefined
}

interface WarmMachine extends PreparedMachine {
  readonly places: Semaphore
  readonly idle: AppProcess[]
  /** Running invocations and those that wait for a process. */
  users: number
  timer: NodeJS.Timeout | undefined
}

interface WarmMachinesOptions {
  /** Starts a machine with the code of the deployment. */
  readonly prepare: (id: DeploymentId) => Promise<PreparedMachine>
  /** How long an idle machine is kept. */
  readonly warmMilliseconds: number
  readonly logger: Logger
}

/**
 * The machines that run apps on this server: one for each deployment, from its first invocation until some time after
 * its last.
 */
export class WarmMachines {
  readonly #options: WarmMachinesOptions
  readonly #warm = new Map<DeploymentId, WarmMachine>()
  readonly #starts = new SingleFlight<DeploymentId, WarmMachine>()
  /** Deployments whose machines stop as soon as they are idle. */
  readonly #retired = new Set<DeploymentId>()
  #isClosed = false

  constructor(options: WarmMachinesOptions) {
    this.#options = options
  }

  /** Runs an action in a process and returns its result as JSON text. Throws an AppFailure if the app fails. */
  async run(id: DeploymentId, call: ActionCall, onLine: (line: string) => void, signal: AbortSignal): Promise<string> {
    for (let attempt = 1; ; attempt += 1) {
      const warm = await this.#take(id, signal)
      try {
        await warm.places.acquire(signal)
        try {
          return await this.#runIn(warm, call, onLine, signal)
        } finally {
          warm.places.release()
        }
      } catch (error) {
        // The machine ended just before the action started, so it is repeated on another one.
        if (!(error instanceof MachineGone)) throw error
        this.#end(id, warm)
        if (attempt === maxAttempts) throw new AppFailure('The machine of the app has ended.', { cause: error })
      } finally {
        this.#release(id, warm)
      }
    }
  }

  /** Resolves when the deployment has a machine, which is kept for a while. */
  async start(id: DeploymentId, signal: AbortSignal): Promise<void> {
    this.#release(id, await this.#take(id, signal))
  }

  async #take(id: DeploymentId, signal: AbortSignal): Promise<WarmMachine> {
    for (;;) {
      if (this.#isClosed) throw new AppFailure('The server is stopping.')
      // The start is shared, so it does not end with its first caller.
      const warm = this.#warm.get(id) ?? (await this.#starts.run(id, () => this.#start(id)))
      signal.throwIfAborted()
      // It may have ended while this call waited.
      if (this.#warm.get(id) !== warm) continue
      clearTimeout(warm.timer)
      warm.users += 1
      return warm
    }
  }

  async #start(id: DeploymentId): Promise<WarmMachine> {
    const prepared = await this.#options.prepare(id)
    const warm: WarmMachine = {
      ...prepared,
      places: new Semaphore(processesAtOnce),
      idle: [],
      users: 0,
      timer: undefined,
    }
    if (this.#isClosed) await warm.machine.stop()
    else {
      this.#warm.set(id, warm)
      this.#keep(id, warm)
      void warm.machine.ended.then(() => this.#end(id, warm))
    }
    return warm
  }

  async #runIn(
    warm: WarmMachine,
    call: ActionCall,
    onLine: (line: string) => void,
    signal: AbortSignal,
  ): Promise<string> {
    const { machine } = warm
    const killedBefore = await machine.countMemoryKills()
    let process = warm.idle.pop()
    while (process?.isOver) process = warm.idle.pop()
    let isUsable = false
    try {
      process ??= await startProcess(warm, onLine, signal)
      const path = await process.run(call, onLine, signal)
      const output = await readResult(machine, path, signal)
      isUsable = true
      return output
    } catch (error) {
      // An action that was ended at its deadline still runs.
      isUsable = error instanceof AppFailure && !signal.aborted && process?.isOver === false
      if (!(error instanceof AppFailure) || (await machine.countMemoryKills()) === killedBefore) throw error
      throw new AppFailure('The app ran out of memory.', { cause: error })
    } finally {
      if (process && isUsable && warm.idle.length < maxIdleProcesses) warm.idle.push(process)
      else await process?.kill()
    }
  }

  #release(id: DeploymentId, warm: WarmMachine): void {
    warm.users -= 1
    if (warm.users > 0 || this.#warm.get(id) !== warm) return
    if (this.#retired.has(id)) this.#end(id, warm)
    else this.#keep(id, warm)
  }

  #keep(id: DeploymentId, warm: WarmMachine): void {
    clearTimeout(warm.timer)
    warm.timer = setTimeout(() => {
      if (warm.users === 0) this.#end(id, warm)
    }, this.#options.warmMilliseconds)
  }

  /** The deployment accepts no more invocations: its machine is stopped after the last one. */
  retire(id: DeploymentId): void {
    const warm = this.#warm.get(id)
    if (!warm) return
    this.#retired.add(id)
    if (warm.users === 0) this.#end(id, warm)
  }

  /** Also called for a machine that has ended by itself, to remove its files. */
  #end(id: DeploymentId, warm: WarmMachine): void {
    clearTimeout(warm.timer)
    if (this.#warm.get(id) !== warm) return
    this.#warm.delete(id)
    this.#retired.delete(id)
    this.#stopMachine(warm.machine)
  }

  #stopMachine(machine: AppMachine): void {
    machine
      .stop()
      .catch((error: unknown) =>
        this.#options.logger.error({ err: error }, 'the machine of an app could not be stopped'),
      )
  }

  /** Stops all machines and everything that runs in them. */
  async close(): Promise<void> {
    this.#isClosed = true
    const all = [...this.#warm.values()]
    this.#warm.clear()
    for (const { timer } of all) clearTimeout(timer)
    await Promise.all(all.map(({ machine }) => machine.stop()))
  }
}

class MachineGone extends Error {}

async function startProcess(
  warm: WarmMachine,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<AppProcess> {
  const { machine, code, waiting } = warm
  warm.waiting = undefined
  try {
    const process = waiting && !waiting.isOver ? waiting : await AppProcess.spawn(machine.operations, code, signal)
    await process.load(onLine, signal)
    return process
  } catch (cause) {
    const isGone = cause instanceof BerthError && cause.code === 'session_unreachable' && !signal.aborted
    throw isGone ? new MachineGone('the machine has ended', { cause }) : cause
  }
}

/** The app may have written anything there. */
async function readResult({ operations }: AppMachine, path: string, signal: AbortSignal): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  const content = await operations.readFile(path, signal).catch((cause: unknown) => {
    throw cause instanceof AgentRefusal ? new AppFailure('The app has removed its result.', { cause }) : cause
  })
  for await (const chunk of content) {
    bytes += chunk.length
    if (bytes > maxOutputBytes) throw new AppFailure(`The result has more than ${maxOutputBytes} bytes.`)
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString()
  try {
    JSON.parse(text)
  } catch (cause) {
    throw new AppFailure('The result is not JSON.', { cause })
  }
  return text
}
