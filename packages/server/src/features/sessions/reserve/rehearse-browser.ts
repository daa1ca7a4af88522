import { configureAgent } from '@berth/contract/agent/agent-endpoints.ts'
import { commandAgent } from '../../../agent-link/command-agent.ts'
import type { ReachableMachine } from '../../../drivers/driver.ts'

/** Makes the agent of a machine with a browser load the code that a create may need. */
export async function rehearseBrowser(machine: ReachableMachine, signal: AbortSignal): Promise<void> {
  await commandAgent(machine, configureAgent, { rehearse: true }, { signal })
}
