import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { Semaphore } from '@berth/runtime/async/semaphore.ts'
import { SingleFlight } from '@berth/runtime/async/single-flight.ts'
import { LRUCache } from 'lru-cache'

const maxBytes = 16 * 1024 * 1024
const freshMilliseconds = 5_000
/** Rendering them takes processor time from the sessions. */
const atOnce = 2
const limitMilliseconds = 5_000

interface ThumbnailServiceOptions {
  readonly sessions: {
    /** The active session of the project. */
    find(projectId: ProjectId, idOrName: string): Promise<SessionId>
    /** Whether its machine is on this server and not frozen. */
    isAwake(id: SessionId): boolean
    /** A picture from its agent, as base64-encoded JPEG. */
    take(id: SessionId, limitMilliseconds: number): Promise<string | undefined>
  }
  readonly clock: Clock
}

interface Thumbnail {
  readonly jpeg: Buffer
  readonly takenAt: number
}

/** Small pictures of sessions. A frozen session keeps its last picture and is not woken for a new one. */
export class ThumbnailService {
  readonly #options: ThumbnailServiceOptions
  readonly #taken = new LRUCache<SessionId, Thumbnail>({
    maxSize: maxBytes,
    sizeCalculation: ({ jpeg }) => jpeg.length,
  })
  readonly #places = new Semaphore(atOnce)
  readonly #flights = new SingleFlight<SessionId, Buffer | undefined>()

  constructor(options: ThumbnailServiceOptions) {
    this.#options = options
  }

  /** Undefined if there is no picture. */
  async get(projectId: ProjectId, idOrName: string): Promise<Buffer | undefined> {
    const { sessions, clock } = this.#options
    const id = await sessions.find(projectId, idOrName)
    const known = this.#taken.get(id)
    const isFresh = known !== undefined && clock.now().getTime() - known.takenAt < freshMilliseconds
    if (isFresh || !sessions.isAwake(id)) return known?.jpeg
    return (await this.#flights.run(id, () => this.#take(id))) ?? known?.jpeg
  }

  /** Call when the session has ended. */
  forget(id: SessionId): void {
    this.#taken.delete(id)
  }

  async #take(id: SessionId): Promise<Buffer | undefined> {
    const { sessions, clock } = this.#options
    await this.#places.acquire()
    // A session that ends meanwhile, or whose page is busy, has no picture. The list treats this as no error.
    const base64 = await sessions
      .take(id, limitMilliseconds)
      .catch(() => undefined)
      .finally(() => this.#places.release())
    if (!base64) return undefined
    const jpeg = Buffer.from(base64, 'base64')
    if (sessions.isAwake(id)) this.#taken.set(id, { jpeg, takenAt: clock.now().getTime() })
    return jpeg
  }
}
