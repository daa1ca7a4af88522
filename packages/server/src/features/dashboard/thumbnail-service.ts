import { takeThumbnail } from '@berth/contract/agent/agent-endpoints.ts'
import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { Semaphore } from '@berth/runtime/async/semaphore.ts'
import { SingleFlight } from '@berth/runtime/async/single-flight.ts'
import { LRUCache } from 'lru-cache'
import type { LifecycleEvents } from '../sessions/machines/lifecycle-events.ts'
import type { SessionMachines } from '../sessions/machines/session-machines.ts'
import type { SessionResolver } from '../sessions/records/resolve-session.ts'

const maxBytes = 16 * 1024 * 1024
const freshMilliseconds = 5_000
/** Drawing them takes processor time from the sessions. */
const atOnce = 2
const limitMilliseconds = 5_000

interface ThumbnailServiceOptions {
  readonly resolver: Pick<SessionResolver, 'resolve'>
  readonly machines: Pick<SessionMachines, 'find' | 'isFrozen' | 'command'>
  readonly events: Pick<LifecycleEvents, 'on'>
  readonly clock: Clock
}

interface Thumbnail {
  readonly jpeg: Buffer
  readonly takenAt: number
}

/** Small pictures of sessions. One that is frozen keeps its last picture, and is not woken for another. */
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
    options.events.on('sessionEnded', (id) => this.#taken.delete(id))
  }

  /** Absent when there is no picture. */
  async get(projectId: ProjectId, idOrName: string): Promise<Buffer | undefined> {
    const { resolver, machines, clock } = this.#options
    const { id } = await resolver.resolve({ projectId }, idOrName)
    const known = this.#taken.get(id)
    const isFresh = known !== undefined && clock.now().getTime() - known.takenAt < freshMilliseconds
    if (isFresh || machines.isFrozen(id) || !machines.find(id)) return known?.jpeg
    return (await this.#flights.run(id, () => this.#take(id))) ?? known?.jpeg
  }

  async #take(id: SessionId): Promise<Buffer | undefined> {
    const { machines, clock } = this.#options
    const options = { limitMilliseconds }
    // A session that goes meanwhile, or a page that is busy, has no picture; that is no error of the list.
    await this.#places.acquire()
    const answer = await machines
      .command(id, takeThumbnail, {}, options)
      .catch(() => undefined)
      .finally(() => this.#places.release())
    if (answer?.jpeg_b64 === undefined || answer.jpeg_b64 === '') return undefined
    const jpeg = Buffer.from(answer.jpeg_b64, 'base64')
    if (machines.find(id)) this.#taken.set(id, { jpeg, takenAt: clock.now().getTime() })
    return jpeg
  }
}
