import { BerthError } from '@berth/contract/errors.ts'
import type { SessionTelemetry } from '../../telemetry/session-telemetry-service.ts'
import { updateTelemetry, withDestination } from '../create/telemetry-selection.ts'
import type { SessionStore } from '../records/session-store.ts'
import type { PlanChange, RestoreSession } from './session-change.ts'

/** Checks the name before anything is done to the browser. The unique index decides between concurrent updates. */
export function planName(store: SessionStore): PlanChange {
  return async ({ id, project_id }, { name }) => {
    if (name === undefined || name === null) return undefined
    if (name && (await store.isNameTaken(project_id, name, id))) throw new BerthError('session_name_taken', { name })
    return { columns: { name: name || null } }
  }
}

export const planTags: PlanChange = async (_session, { tags }) =>
  tags ? { columns: { tags: JSON.stringify(tags) } } : undefined

/** The capture changes before the row is written, so that events which the caller has just disabled do not follow. */
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
  return ({ id, telemetry: config }) => telemetry.configure(id, config, { isRestore: true })
}
