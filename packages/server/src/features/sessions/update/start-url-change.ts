import { configureAgent } from '@berth/contract/agent/agent-endpoints.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { PlanChange } from './session-change.ts'

/** Navigates after all other changes. Its result is not part of the response. */
export function planNavigation(machines: SessionMachines): PlanChange {
  return async ({ id }, { start_url }) => {
    if (!start_url) return undefined
    return {
      columns: { start_url },
      afterwards: () => void machines.command(id, configureAgent, { start_url }).catch(() => {}),
    }
  }
}
