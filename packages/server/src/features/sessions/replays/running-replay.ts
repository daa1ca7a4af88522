import type { IncomingMessage } from 'node:http'
import type { ReplayEndReason } from '@berth/contract/replays/replay.ts'
import { endReplayRecording } from '../../../agent-link/transfers/recording-link.ts'
import type { ReachableMachine } from '../../../drivers/driver.ts'
import { divideRecording, type Fragment, MalformedRecording } from './mp4-fragments.ts'
import type { ReplayParts } from './replay-parts.ts'
import type { Replay } from './replay-store.ts'

/** What a crash of this server may lose, in addition to the fragment that is being recorded. */
const minPartMilliseconds = 2_000
/** Long recordings have longer parts, so that their number stays in the hundreds. */
const partOfWhole = 0.01
/** A regular recording of three days has fewer than half as many. */
const maxParts = 2_000
const maxPartBytes = 4 * 1024 ** 2
const beginLimitMilliseconds = 2_000
/** How long the recorder may take to write its last frames. */
const endLimitMilliseconds = 5_000
const endToleranceMilliseconds = 1_000

interface RunningReplayOptions {
  readonly replay: Replay
  readonly machine: ReachableMachine
  readonly response: IncomingMessage
  readonly fragments: AsyncIterator<Fragment>
  readonly parts: ReplayParts
  readonly maxBytes: number
  readonly maxMilliseconds: number | undefined
}

/** Reads the header of a recording, and returns it with the rest. */
export async function beginRecording(
  response: IncomingMessage,
): Promise<{ readonly head: Buffer; readonly fragments: AsyncIterator<Fragment> }> {
  const fragments = divideRecording(response)
  const limit = setTimeout(() => response.destroy(), beginLimitMilliseconds)
  const head = await fragments.next().finally(() => clearTimeout(limit))
  if (head.done) throw new MalformedRecording('the recorder sent nothing')
  return { head: head.value.bytes, fragments }
}

/** A recording in progress: receives its fragments from the agent and stores several of them at a time. */
export class RunningReplay {
  readonly replay: Replay
  /** Settles with the reason of the end when everything recorded is stored. Never rejects. */
  readonly ended: Promise<ReplayEndReason>
  /** Why this server stopped it. */
  #reason: ReplayEndReason | undefined
  readonly #options: RunningReplayOptions
  #pending: Fragment[] = []
  #pendingBytes = 0
  #pendingMilliseconds = 0
  #parts = 0
  #bytes = 0
  #milliseconds = 0

  constructor(options: RunningReplayOptions) {
    this.replay = options.replay
    this.#options = options
    this.ended = this.#run()
  }

  /** The duration of the stored part. */
  get milliseconds(): number {
    return this.#milliseconds
  }

  /** Resolves when everything recorded is stored. */
  async end(reason: ReplayEndReason): Promise<void> {
    const { machine, response } = this.#options
    this.#reason ??= reason
    const limit = setTimeout(() => response.destroy(), endLimitMilliseconds)
    // The recorder ends with its machine. A response that does not end is cut off.
    await endReplayRecording(machine, this.replay.id).catch(() => response.destroy())
    await this.ended
    clearTimeout(limit)
  }

  async #run(): Promise<ReplayEndReason> {
    const { response, fragments, maxBytes } = this.#options
    let reason: ReplayEndReason | undefined
    try {
      for (let next = await this.#next(fragments); next; next = await this.#next(fragments)) {
        this.#take(next)
        if (this.#isPartDue) await this.#store()
        if (this.#bytes + this.#pendingBytes < maxBytes && this.#parts < maxParts) continue
        reason = 'max_size'
        break
      }
      await this.#store()
    } catch (error) {
      reason = isFull(error) ? 'storage_full' : 'storage_failed'
    }
    response.destroy()
    return reason ?? this.#reason ?? this.#ownEnd
  }

  /** Whatever ends the stream, the data before it is a valid recording. */
  async #next(fragments: AsyncIterator<Fragment>): Promise<Fragment | undefined> {
    const { done, value } = await fragments.next().catch(() => ({ done: true, value: undefined }))
    return done ? undefined : value
  }

  #take(fragment: Fragment): void {
    this.#pending.push(fragment)
    this.#pendingBytes += fragment.bytes.length
    this.#pendingMilliseconds += fragment.durationMilliseconds
  }

  get #isPartDue(): boolean {
    const due = Math.max(minPartMilliseconds, this.#milliseconds * partOfWhole)
    return this.#pendingBytes >= maxPartBytes || this.#pendingMilliseconds >= due
  }

  async #store(): Promise<void> {
    if (this.#pending.length === 0) return
    const part = {
      bytes: Buffer.concat(this.#pending.map(({ bytes }) => bytes)),
      durationMilliseconds: this.#pendingMilliseconds,
    }
    await this.#options.parts.write(this.replay, this.#parts++, part)
    this.#bytes += this.#pendingBytes
    this.#milliseconds += this.#pendingMilliseconds
    this.#pending = []
    this.#pendingBytes = 0
    this.#pendingMilliseconds = 0
  }

  /** The recorder stops by itself at its time limit, and otherwise only after a failure. */
  get #ownEnd(): ReplayEndReason {
    const { maxMilliseconds = Number.POSITIVE_INFINITY } = this.#options
    return this.#milliseconds >= maxMilliseconds - endToleranceMilliseconds ? 'max_duration' : 'recorder_failed'
  }
}

/** Whether the error, or its cause, is a full disk. */
function isFull(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown }
  return code === 'ENOSPC' || code === 'EDQUOT' || (cause !== undefined && isFull(cause))
}
