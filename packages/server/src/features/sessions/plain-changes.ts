import type { PlanChange } from './session-change.ts'

/** Changes that concern the row alone. */
export const plainChanges: readonly PlanChange[] = [
  async (_session, { name }) => (name === undefined || name === null ? undefined : { columns: { name: name || null } }),
  async (_session, { tags }) => (tags ? { columns: { tags: JSON.stringify(tags) } } : undefined),
]
