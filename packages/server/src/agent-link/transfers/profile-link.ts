import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { agentProfilePath } from '@berth/contract/agent/agent-protocol.ts'
import type { ReachableMachine } from '../../drivers/driver.ts'
import { callAgent, requestAgent } from '../agent-client.ts'
import { AgentRefusal } from '../command-agent.ts'

export interface ProfileLoading {
  /** Opens the saved tabs, or an empty page. */
  readonly tabs: 'restore' | 'blank'
  readonly signal: AbortSignal
}

/** Makes the agent's browser use the state. Rejects with an `AgentRefusal` when the agent cannot. */
export async function sendProfile(
  machine: ReachableMachine,
  state: Readable,
  { tabs, signal }: ProfileLoading,
): Promise<void> {
  const path = `${agentProfilePath}?tabs=${tabs}`
  const { status, text } = await requestAgent(machine, { method: 'PUT', path, body: state, signal })
  if (status !== 204) throw new AgentRefusal(agentProfilePath, status, text)
}

/** Restores the state before `sendProfile` in a running browser. Does nothing if there was none. */
export async function takeProfileBack(machine: ReachableMachine, signal: AbortSignal): Promise<void> {
  const { status, text } = await requestAgent(machine, { method: 'DELETE', path: agentProfilePath, signal })
  if (status !== 204) throw new AgentRefusal(agentProfilePath, status, text)
}

/**
 * Ends the agent's browser and returns its final state. The bytes are untrusted, and complete only if the stream ends
 * without an error.
 */
export async function receiveProfile(machine: ReachableMachine, signal: AbortSignal): Promise<IncomingMessage> {
  const response = await callAgent(machine, { method: 'POST', path: agentProfilePath, signal })
  if (response.statusCode === 200) return response
  response.destroy()
  throw new Error(`the agent responded to ${agentProfilePath} with ${response.statusCode}`)
}
