import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Insertable } from 'kysely'
import type { SessionTable } from '../../../database/tables.ts'
import type { LimitService } from '../../limits/limit-service.ts'
import { type EgressColumns, hasDefaultEgress } from '../machines/session-egress.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import { viewportOf } from '../machines/session-viewport.ts'
import type { Session } from '../records/session.ts'
import type { ChosenMachine, Reserve } from '../reserve/reserve.ts'
import { isReserveWindow, type ReserveKind } from '../reserve/reserve-kind.ts'
import type { LaunchInputs } from './machine-spec.ts'
import type { SessionRequest } from './session-request.ts'
import { selectTelemetry } from './telemetry-selection.ts'

/** In the first moments the agent, slow after a thaw, serves only the caller. The server's own requests wait. */
const followPauseMilliseconds = 200

interface ReadyMachinesOptions {
  readonly machines: SessionMachines
  readonly reserve: Reserve
  readonly limits: LimitService
  readonly logger: Logger
}

interface ReadyClaim {
  readonly row: Insertable<SessionTable>
  readonly kind: ReserveKind
  readonly egress: EgressColumns
}

interface ReadySession {
  readonly session: Session
  readonly claimed: ChosenMachine
  /** If false, the session needs another machine. */
  readonly isUsable: boolean
}

/**
 * Assigns machines of the reserve to sessions that need no other settings. One statement takes a session slot and the
 * machine and inserts an active row, while the machine is being thawed.
 */
export class ReadyMachines {
  readonly #options: ReadyMachinesOptions

  constructor(options: ReadyMachinesOptions) {
    this.#options = options
  }

  /** Undefined if there is no such machine or no free slot. Nothing has changed then. */
  async claim({ row, kind, egress }: ReadyClaim): Promise<ReadySession | undefined> {
    const { machines, reserve, limits, logger } = this.#options
    const claimed = reserve.choose(kind)
    if (!claimed) return undefined
    const { id, project_id, stealth, created_at: createdAt } = row
    const { machine, awake } = claimed
    machines.adopt(id, machine, { gpu: false, createdAt: createdAt as Date, begin: afterFirstMoments(awake) })
    const leavesAsItIs = hasDefaultEgress(egress)
    const prepared = Promise.all([
      awake,
      leavesAsItIs || machines.openRoute({ id, project_id, stealth, ...egress, state: 'active' }),
    ])
    prepared.catch(() => {}) // Awaited when there is a session.
    const usable = { ...row, state: 'active' as const, idle_since: createdAt as Date }
    const session = await reserve
      .claimFor(claimed, usable, limits.takesSlot(project_id))
      .catch(async (error: unknown) => {
        await this.#putBack(id, claimed, prepared)
        throw error
      })
    if (!session) {
      await this.#putBack(id, claimed, prepared)
      return undefined
    }
    reserve.noteClaim(claimed, { isWaitedFor: false })
    const isUsable = await prepared.then(
      () => !machines.hasGone(id),
      (error: unknown) => {
        logger.warn({ err: error, sessionId: id }, 'a machine of the reserve is unusable')
        return false
      },
    )
    return { session, claimed, isUsable }
  }

  async #putBack(id: Session['id'], claimed: ChosenMachine, prepared: Promise<unknown>): Promise<void> {
    const { machines, reserve } = this.#options
    await machines.detach(id)
    await prepared.catch(() => {})
    await reserve.putBack(claimed)
  }
}

/** When the server starts to follow the agent of a claimed machine. */
export function afterFirstMoments(awake: Promise<void>): Promise<void> {
  return awake.catch(() => {}).then(() => delay(followPauseMilliseconds, undefined, { ref: false }))
}

/** Whether the session needs only a machine of the reserve, without any configuration of its agent. */
export function asksForNothingMore(
  { kiosk_mode, start_url, telemetry, viewport, gpu, network }: SessionRequest,
  { extensions, profile }: LaunchInputs,
): boolean {
  const isLaunchedAlready = !kiosk_mode && isReserveWindow(viewportOf(viewport, gpu)) && extensions.length === 0
  const tellsNothing = !start_url && !selectTelemetry(telemetry)
  return isLaunchedAlready && tellsNothing && !profile?.hasState && !network?.proxy_routes?.length
}
