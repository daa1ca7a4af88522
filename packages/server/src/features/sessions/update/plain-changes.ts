import { BerthError } from '@berth/contract/errors.ts'
import type { SessionTelemetry } from '../../telemetry/session-telemetry-service.ts'
import { updateTelemetry, withDestination } from '../create/telemetry-selection.ts'
import type { SessionStore } from '../records/session-store.ts'
import type { PlanChange, RestoreSession } from './session-change.ts'

/** A name that is taken is refused before anything is done to the browser; of two at once the index lets one through. */
export function planName(store: SessionStore): PlanChange {
  return async ({ id, project_id }, { name }) => {
    if (name === undefined || name === null) return undefined
    if (name && (await store.isNameTaken(project_id, name, id))) throw new BerthError('session_name_taken', { name })
    return { columns: { name: name || null } }
  }
}

export const planTags: PlanChange = async (_session, { tags }) =>
  tags ? { columns: { tags: JSON.stringify(tags) } } : undefined

/** What is captured changes before the row says so: events that the caller has just turned off do not follow. */
export function planTelemetry(telemetry: SessionTelemetry): PlanChange {
  return async ({ id, telemetry: current, otlp_destination_id: destination }, { telemetry: asked }) => {
    const updated = updateTelemetry(current, asked)
    if (updated === undefined) return undefined
    const next = withDestination(updated, destination)
    return {
      columns: { telemetry: next && JSON.stringify(next) },
      apply: () => telemetry.configure(id, next),
      revert: () => telemetry.configure(id, current),
    }
  }
}

export function restoreTelemetry(telemetry: SessionTelemetry): RestoreSession {
  return ({ id, telemetry: config }) => telemetry.configure(id, config)
}
