import { BerthError } from '@berth/contract/errors.ts'
import { updateTelemetry } from '../create/telemetry-selection.ts'
import type { SessionStore } from '../records/session-store.ts'
import type { PlanChange } from './session-change.ts'

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

export const planTelemetry: PlanChange = async ({ telemetry: current }, { telemetry: asked }) => {
  const telemetry = updateTelemetry(current, asked)
  return telemetry === undefined ? undefined : { columns: { telemetry: telemetry && JSON.stringify(telemetry) } }
}
