import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { agentProfilePath } from '@berth/contract/agent/agent-protocol.ts'
import type { ReachableMachine } from '../drivers/driver.ts'
import { askAgent, callAgent } from './agent-client.ts'
import { AgentRefusal } from './command-agent.ts'

export interface ProfileLoading {
  /** Those that were open when the profile was saved, or an empty page. */
  readonly tabs: 'restore' | 'blank'
  readonly signal: AbortSignal
}

/** Has the browser of the agent use the state. Rejects with an `AgentRefusal` when the agent cannot. */
export async function sendProfile(
  machine: ReachableMachine,
  state: Readable,
  { tabs, signal }: ProfileLoading,
): Promise<void> {
  const path = `${agentProfilePath}?tabs=${tabs}`
  const { status, text } = await askAgent(machine, { method: 'PUT', path, body: state, signal })
  if (status !== 204) throw new AgentRefusal(agentProfilePath, status, text)
}

/** Has a running browser go back to the state that it had before a profile was sent; nothing when none was. */
export async function takeProfileBack(machine: ReachableMachine, signal: AbortSignal): Promise<void> {
  const { status, text } = await askAgent(machine, { method: 'DELETE', path: agentProfilePath, signal })
  if (status !== 204) throw new AgentRefusal(agentProfilePath, status, text)
}

/**
 * Has the agent end its browser and give out what its state is then: bytes that may be anything, and that are only
 * whole when their stream has ended well.
 */
export async function receiveProfile(machine: ReachableMachine, signal: AbortSignal): Promise<IncomingMessage> {
  const response = await callAgent(machine, { method: 'POST', path: agentProfilePath, signal })
  if (response.statusCode === 200) return response
  response.destroy()
  throw new Error(`the agent answers ${agentProfilePath} with ${response.statusCode}`)
}
