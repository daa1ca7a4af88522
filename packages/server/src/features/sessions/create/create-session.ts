import { newId, type ProjectId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Insertable } from 'kysely'
import type { SessionTokens } from '../../../access/session-tokens.ts'
import type { Database } from '../../../database/database.ts'
import type { SessionTable } from '../../../database/tables.ts'
import type { LimitService } from '../../limits/limit-service.ts'
import type { SessionTelemetry } from '../../telemetry/session-telemetry-service.ts'
import type { SessionTerminator } from '../end/end-session.ts'
import type { LifecycleEvents } from '../machines/lifecycle-events.ts'
import type { SessionEgress } from '../machines/session-egress.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { Session } from '../records/session.ts'
import type { SessionStore } from '../records/session-store.ts'
import type { ChosenMachine, Reserve } from '../reserve/reserve.ts'
import { isKind, isUnlaunched, kindFor, type ReserveKind, type ReserveMiss } from '../reserve/reserve-kind.ts'
import { asksForNothingMore, type ReadyMachines } from './claim-ready-machine.ts'
import { attributeError, needsOf } from './machine-spec.ts'
import type { SessionProvisioner } from './provision-session.ts'
import type { SessionRequest, SessionRequests } from './session-request.ts'

interface SessionCreatorOptions {
  readonly store: SessionStore
  readonly requests: SessionRequests
  readonly machines: SessionMachines
  readonly provisioner: SessionProvisioner
  readonly reserve: Reserve
  readonly readyMachines: ReadyMachines
  readonly terminator: SessionTerminator
  readonly tokens: Pick<SessionTokens, 'issue'>
  readonly limits: LimitService
  readonly egress: SessionEgress
  readonly telemetry: SessionTelemetry
  readonly events: LifecycleEvents
  readonly clock: Clock
  readonly logger: Logger
}

/** How the new session is counted and stored. */
export interface SessionSlot {
  /** Takes a slot for the session and inserts its row, both or neither. */
  readonly take: (write: (database: Database) => Promise<Session>) => Promise<Session>
  /** Additional columns of the row. */
  readonly columnsFor: (row: Insertable<SessionTable>) => Partial<Insertable<SessionTable>>
  /** `active`: its creator uses it immediately. `idle`: it waits in a pool. */
  readonly state: 'active' | 'idle'
}

interface CreateOptions {
  readonly projectId: ProjectId
  readonly request: SessionRequest
  readonly signal: AbortSignal
  readonly place?: SessionSlot | undefined
}

interface CreatedSession {
  readonly session: Session
  readonly isFromReserve: boolean
}

/**
 * Creates sessions. If a session only needs a machine of the reserve, one statement makes it usable (`ReadyMachines`).
 * Others take three steps. *Allocate*: one transaction takes a slot and inserts the row, which names the session's
 * machine: one of the reserve, or one to be started. *Provision*: the machine receives the initial settings of the
 * session. *Activate*: one statement makes the session accessible. A crash between steps leaves a row in the state
 * `starting` and at most the machine that it names.
 */
export class SessionCreator {
  readonly #options: SessionCreatorOptions

  constructor(options: SessionCreatorOptions) {
    this.#options = options
  }

  /**
   * Creates a session and resolves when its browser can be used. A failed start leaves nothing. If the session is
   * deleted while it starts, it ends and this rejects.
   */
  async create(
    projectId: ProjectId,
    request: SessionRequest,
    signal: AbortSignal,
    place?: SessionSlot,
  ): Promise<Session> {
    const { events } = this.#options
    const startedAt = performance.now()
    const note = (isFromReserve: boolean, hasFailed: boolean) => {
      // Nobody waits for sessions of pools.
      if (place?.state === 'idle') return
      events.emit('createEnded', projectId, { milliseconds: performance.now() - startedAt, isFromReserve, hasFailed })
    }
    try {
      const { session, isFromReserve } = await this.#create({ projectId, request, signal, place })
      note(isFromReserve, false)
      return session
    } catch (error) {
      if (!signal.aborted && !(error instanceof BerthError && error.status < 500)) note(false, true)
      throw error
    }
  }

  async #create({ projectId, request, signal, place }: CreateOptions): Promise<CreatedSession> {
    const { machines, store, terminator, requests, provisioner, reserve, readyMachines, tokens, clock } = this.#options
    const selected = await requests.select(projectId, request)
    const kind = kindFor(needsOf(request, selected.inputs))
    using _create = reserve.noteCreate(isKind(kind) ? kind : undefined)
    const now = clock.now()
    const [id, machineId] = [newId('session', now), newId('machine', now)]
    // Signed by other threads in the meantime. The record of the session uses the result.
    tokens.issue(id, now).catch(() => {})
    // After this call, the reaper removes what an interrupted create left in the database.
    using _expected = machines.expect(id)
    const row = requests.rowOf({ id, machineId, projectId, request, selected, now })
    const { inputs, egress } = selected
    const isPlain = place === undefined && isKind(kind) && !isUnlaunched(kind) && asksForNothingMore(request, inputs)
    const ready = isPlain ? await readyMachines.claim({ row, kind, egress }) : undefined
    const allocated = ready ?? (await this.#allocate(place, row, kind))
    if (ready) this.#noteAllocation(ready.session)
    if (ready?.isUsable) return { session: ready.session, isFromReserve: true }
    const { claimed } = allocated
    let { session } = allocated

    let active: Session | undefined
    try {
      const provisioned = await provisioner.provision({
        session,
        request,
        inputs,
        claimed,
        isOfNoUse: ready !== undefined,
        signal,
      })
      const { idleSince } = provisioned
      session = provisioned.session
      active = await this.#activate(session, idleSince, place?.state ?? 'active')
    } catch (error) {
      await this.#abandon(session)
      if (!(await store.hasEnded(id))) throw attributeError(error, request)
    }
    // A claimed machine that was unusable has been replaced.
    const isFromReserve = active !== undefined && active.machine_id === claimed?.machine.id
    if (active && !machines.hasGone(id)) return { session: active, isFromReserve }
    if (!active) {
      await machines.stop(session)
      throw new BerthError('session_ended_while_starting')
    }
    // Its machine ended before the row was active, when only this call could handle it.
    await terminator.end(id, 'machine_ended')
    throw new BerthError('session_start_failed', { reason: 'its machine ended.' })
  }

  /** One of the session slots of the project. */
  #placeOf(projectId: ProjectId): SessionSlot {
    const { limits } = this.#options
    return { take: (write) => limits.takeSlot(projectId, write), columnsFor: () => ({}), state: 'active' }
  }

  async #allocate(
    place: SessionSlot | undefined,
    row: Insertable<SessionTable>,
    kind: ReserveKind | ReserveMiss,
  ): Promise<{ readonly session: Session; readonly claimed: ChosenMachine | undefined }> {
    const { reserve } = this.#options
    const chosen = isKind(kind) ? reserve.choose(kind) : undefined
    const write = async () => {
      // One statement instead of a transaction. If it finds no machine or no slot, the transaction finds out which.
      const written = place === undefined ? await this.#takeOrdinarySlot(row, chosen) : undefined
      return written ?? this.#takeSlot(place ?? this.#placeOf(row.project_id), row, chosen)
    }
    const session = await write().catch(async (error: unknown) => {
      if (chosen) await reserve.putBack(chosen)
      throw error
    })
    const claimed = chosen?.machine.id === session.machine_id ? chosen : undefined
    if (claimed) reserve.noteClaim(claimed, { isWaitedFor: true })
    else reserve.noteMiss(isKind(kind) ? 'empty' : kind)
    this.#noteAllocation(session)
    return { session, claimed }
  }

  #takeOrdinarySlot(row: Insertable<SessionTable>, chosen: ChosenMachine | undefined): Promise<Session | undefined> {
    const { limits, reserve, store } = this.#options
    const takesSlot = limits.takesSlot(row.project_id)
    return chosen ? reserve.claimFor(chosen, row, takesSlot) : store.insertInPlace(row, takesSlot)
  }

  #takeSlot(
    { take, columnsFor }: SessionSlot,
    row: Insertable<SessionTable>,
    chosen: ChosenMachine | undefined,
  ): Promise<Session> {
    const { store, reserve } = this.#options
    return take(async (database) => {
      const isClaimed = chosen && (await reserve.claim(chosen, database))
      return store.insert({ ...row, ...columnsFor(row), ...(isClaimed && { machine_id: chosen.machine.id }) }, database)
    })
  }

  #noteAllocation({ id, machine_id: machineId, project_id }: Session): void {
    const { events, logger } = this.#options
    // Helps an operator to find the machine of a session: its folders and control groups have only this name.
    logger.info({ sessionId: id, machineId }, 'a session is allocated a machine')
    events.emit('sessionChanged', project_id, id)
  }

  /** Undefined if the session was deleted before. */
  async #activate(session: Session, idleSince: Date | null, state: SessionSlot['state']): Promise<Session | undefined> {
    const { egress, store, events } = this.#options
    await egress.activateRoutes(session)
    const active = await store.activate(session.id, idleSince, state)
    events.emit('sessionChanged', session.project_id, session.id)
    return active
  }

  /** The browser may be ready while only the database is unavailable. */
  async #abandon(session: Session): Promise<void> {
    const { machines, store, events } = this.#options
    await machines.stop(session)
    await store.removeStarting(session.id)
    events.emit('sessionEnded', session.id)
    events.emit('sessionChanged', session.project_id, session.id)
  }
}
