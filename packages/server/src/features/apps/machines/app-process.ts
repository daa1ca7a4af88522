import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { appCommand } from './app-runtime.ts'
import type { MachineOperations } from './machine-operations.ts'
import { OutputLines } from './output-lines.ts'
import { inMachine } from './paths.ts'

/** The limit of one invocation. An app that writes more is ended. */
const maxOutputBytes = 4 * 1024 ** 2
const maxReasonLength = 2_000
const loadLimitMilliseconds = 60_000

const maxApps = 100
const maxActions = 1_000
const maxNameLength = 255
const spokeItself = 'The app speaks in place of its process.'
const notUnderstood = `The app registers more than ${maxApps} apps, or ${maxActions} actions of one, or a name that is empty or longer than ${maxNameLength} characters, or it speaks in place of its process.`

const Name = z.string().min(1).max(maxNameLength)
const Message = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('loaded'),
    apps: z
      .array(z.object({ name: Name, actions: z.array(Name).max(maxActions) }))
      .min(1)
      .max(maxApps),
  }),
  z.object({ type: z.literal('load-failed'), reason: z.string() }),
  z.object({ type: z.literal('done'), path: z.string() }),
  z.object({ type: z.literal('failed'), reason: z.string() }),
])
type Message = z.infer<typeof Message>

export type RegisteredApps = Extract<Message, { type: 'loaded' }>['apps']

/** A failure of the app itself. The message is for its owner. */
export class AppFailure extends Error {}

export interface AppCode {
  /** Relative to the folder of the app. */
  readonly entrypoint: string
  readonly environment: Readonly<Record<string, string>>
}

export interface ActionCall {
  readonly invocationId: string
  readonly app: string
  readonly action: string
  readonly payload: string | undefined
}

type OnLine = (line: string) => void

/**
 * A process that has loaded an app and runs its actions, one at a time. Its messages are trusted only for its own
 * invocations, because the code can write anything.
 */
export class AppProcess {
  readonly #operations: MachineOperations
  readonly #id: string
  readonly #secret = randomBytes(24).toString('hex')
  readonly #following = new AbortController()
  readonly #end = Promise.withResolvers<never>()
  #isOver = false
  #message = Promise.withResolvers<Message>()
  #onLine: OnLine = () => {}
  #outputBytes = 0
  #isEmptyLineHeld = false

  private constructor(operations: MachineOperations, id: string) {
    this.#operations = operations
    this.#id = id
    this.#end.promise.catch(() => {}) // Callers that wait for a message see the rejection.
  }

  /** Starts a process that waits until the files of the app exist. It does not read them before. */
  static async spawn(
    operations: MachineOperations,
    { entrypoint, environment }: AppCode,
    signal: AbortSignal,
  ): Promise<AppProcess> {
    const id = await operations.spawn(
      {
        ...appCommand(entrypoint, environment.KERNEL_BASE_URL ?? ''),
        cwd: inMachine.app,
        env: environment,
      },
      signal,
    )
    const spawned = new AppProcess(operations, id)
    void spawned.#follow()
    return spawned
  }

  /** Makes the process load the app. After a rejection, nothing of the process is left. */
  async load(onLine: OnLine, caller: AbortSignal): Promise<RegisteredApps> {
    this.#onLine = onLine
    const limit = AbortSignal.timeout(loadLimitMilliseconds)
    const signal = AbortSignal.any([caller, limit])
    try {
      await this.#operations.write(this.#id, `${JSON.stringify({ secret: this.#secret })}\n`, signal)
      const message = await this.#next(signal)
      if (message.type === 'loaded') return message.apps
      throw new AppFailure('reason' in message ? message.reason : spokeItself)
    } catch (error) {
      await this.kill()
      if (caller.aborted || !limit.aborted) throw error
      throw new AppFailure(`The app was not loaded within ${loadLimitMilliseconds / 1000} s.`, { cause: error })
    }
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Runs an action and returns the path of the file with its result. Throws an AppFailure if the app fails. */
  async run({ invocationId, app, action, payload }: ActionCall, onLine: OnLine, signal: AbortSignal): Promise<string> {
    this.#onLine = onLine
    this.#outputBytes = 0
    const call = { invocation_id: invocationId, app, action, ...(payload !== undefined && { payload }) }
    await this.#operations.write(this.#id, `${JSON.stringify(call)}\n`, signal).catch((cause: unknown) => {
      if (signal.aborted) throw signal.reason
      throw new AppFailure('The process of the app has ended.', { cause })
    })
    const message = await this.#next(signal)
    if (message.type === 'done') return message.path
    throw new AppFailure('reason' in message ? message.reason : spokeItself)
  }

  /** Kills the process and everything it has started. */
  async kill(): Promise<void> {
    this.#isOver = true
    this.#following.abort()
    // If its machine is gone, the process is too.
    await this.#operations.kill(this.#id).catch(() => {})
  }

  async #next(signal: AbortSignal): Promise<Message> {
    const aborted = Promise.withResolvers<never>()
    const abort = () => aborted.reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    try {
      return await Promise.race([this.#message.promise, this.#end.promise, aborted.promise])
    } finally {
      signal.removeEventListener('abort', abort)
      this.#message = Promise.withResolvers()
    }
  }

  async #follow(): Promise<void> {
    const lines = new OutputLines((line, stream) => this.#takeLine(line, stream))
    let end = 'The machine of the app has ended.'
    try {
      for await (const piece of this.#operations.output(this.#id, this.#following.signal)) {
        if ('event' in piece) end = describeExit(piece.exit_code)
        else this.#count(piece.data_b64.length)
        lines.take(piece)
      }
    } catch (error) {
      if (error instanceof AppFailure) end = error.message
    }
    this.#isOver = true
    lines.end()
    if (this.#isEmptyLineHeld) this.#onLine('')
    this.#end.reject(new AppFailure(end))
  }

  #count(encodedLength: number): void {
    this.#outputBytes += (encodedLength * 3) / 4
    if (this.#outputBytes <= maxOutputBytes) return
    throw new AppFailure(`The app wrote more than ${maxOutputBytes / 1024 ** 2} MiB of output.`)
  }

  /** The next line shows whether an empty line comes from the app. */
  #tellLine(line: string, stream: 'stdout' | 'stderr'): void {
    if (stream === 'stderr') {
      this.#onLine(line)
      return
    }
    if (this.#isEmptyLineHeld) this.#onLine('')
    this.#isEmptyLineHeld = line === ''
    if (line !== '') this.#onLine(line)
  }

  #takeLine(line: string, stream: 'stdout' | 'stderr'): void {
    const isMessage = stream === 'stdout' && line.startsWith(`${this.#secret} `)
    if (!isMessage) {
      this.#tellLine(line, stream)
      return
    }
    // The process had to end an incomplete line.
    this.#isEmptyLineHeld = false
    try {
      const message = Message.parse(JSON.parse(line.slice(this.#secret.length + 1)))
      this.#message.resolve('reason' in message ? { ...message, reason: plain(message.reason) } : message)
    } catch {
      this.#message.resolve({ type: 'failed', reason: notUnderstood })
    }
  }
}

function describeExit(code: number): string {
  return code === -1 ? 'The process of the app was killed.' : `The process of the app ended with exit code ${code}.`
}

/** PostgreSQL cannot store NUL. */
function plain(text: string): string {
  return text.replaceAll('\0', '\uFFFD').slice(0, maxReasonLength)
}
