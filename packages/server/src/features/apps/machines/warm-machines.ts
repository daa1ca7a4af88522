import type { DeploymentId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { Semaphore } from '@berth/runtime/async/semaphore.ts'
import { SingleFlight } from '@berth/runtime/async/single-flight.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { AgentRefusal } from '../../../agent-link/command-agent.ts'
import type { AppMachine } from './app-machine.ts'
import { type ActionCall, type AppCode, AppFailure, AppProcess } from './app-process.ts'

/** Of one deployment; more wait. */
const processesAtOnce = 16
/** With the app loaded, for the next invocation. */
const maxIdleProcesses = 4
const maxOutputBytes = 4_500_000
const maxAttempts = 3

export interface PreparedMachine {
  readonly machine: AppMachine
  readonly code: AppCode
  /** The process for the first invocation, which has begun to start. */
  waiting?: AppProcess | undefined
}

interface WarmMachine extends PreparedMachine {
  readonly places: Semaphore
  readonly idle: AppProcess[]
  /** Invocations that run or wait for a place. */
  users: number
  timer: NodeJS.Timeout | undefined
}

interface WarmMachinesOptions {
  /** Starts a machine with the code of the deployment. */
  readonly prepare: (id: DeploymentId) => Promise<PreparedMachine>
  /** How long a machine without an invocation is kept. */
  readonly warmMilliseconds: number
  readonly logger: Logger
}

/** The machines that run apps on this server: one for each deployment, from its first invocation until some time after the last. */
export class WarmMachines {
  readonly #options: WarmMachinesOptions
  readonly #warm = new Map<DeploymentId, WarmMachine>()
  readonly #starts = new SingleFlight<DeploymentId, WarmMachine>()
  /** Are stopped as soon as nothing runs in them. */
  readonly #retired = new Set<DeploymentId>()
  #isClosed = false

  constructor(options: WarmMachinesOptions) {
    this.#options = options
  }

  /** Runs an action in a process of its own and returns its result as JSON text. Throws an AppFailure where the app fails. */
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
        // It ended a moment ago, before the action began: the next one is another machine.
        if (!(error instanceof MachineGone)) throw error
        this.#end(id, warm)
        if (attempt === maxAttempts) throw new AppFailure('The machine of the app has ended.', { cause: error })
      } finally {
        this.#letGo(id, warm)
      }
    }
  }

  /** Resolves when the deployment has a machine, which is kept for a while. */
  async start(id: DeploymentId, signal: AbortSignal): Promise<void> {
    this.#letGo(id, await this.#take(id, signal))
  }

  async #take(id: DeploymentId, signal: AbortSignal): Promise<WarmMachine> {
    for (;;) {
      if (this.#isClosed) throw new AppFailure('The server is stopping.')
      // Others wait for the same start, so that it does not end with the one who was first.
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
      isUsable = error instanceof AppFailure && process?.isOver === false
      if (!(error instanceof AppFailure) || (await machine.countMemoryKills()) === killedBefore) throw error
      throw new AppFailure('The app ran out of memory.', { cause: error })
    } finally {
      if (process && isUsable && warm.idle.length < maxIdleProcesses) warm.idle.push(process)
      else await process?.kill()
    }
  }

  #letGo(id: DeploymentId, warm: WarmMachine): void {
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

  /** The deployment takes no more invocations: its machine ends when the last one has. */
  retire(id: DeploymentId): void {
    const warm = this.#warm.get(id)
    if (!warm) return
    this.#retired.add(id)
    if (warm.users === 0) this.#end(id, warm)
  }

  /** Also for a machine that has ended by itself, which leaves files. */
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

  /** Ends all machines and what runs in them. */
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
