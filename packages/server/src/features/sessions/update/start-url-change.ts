import { configureAgent } from '@berth/contract/agent/agent-endpoints.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { PlanChange } from './session-change.ts'

/** Navigates when everything else of the update is done. What comes of it is nobody's answer. */
export function planNavigation(machines: SessionMachines): PlanChange {
  return async ({ id }, { start_url }) => {
    if (!start_url) return undefined
    return {
      columns: { start_url },
      afterwards: () => void machines.command(id, configureAgent, { start_url }).catch(() => {}),
    }
  }
}
