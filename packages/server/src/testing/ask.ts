import { callAgent } from '../agent-link/agent-client.ts'
import type { ReachableMachine } from '../drivers/driver.ts'

/** Asks a machine's agent on a connection of its own, and returns the JSON that it answers. */
export async function ask(machine: ReachableMachine, path: string, body?: unknown): Promise<unknown> {
  const method = body === undefined ? 'GET' : 'POST'
  const response = await callAgent(machine, { method, path, ...(body !== undefined && { body: JSON.stringify(body) }) })
  const text = await new Response(response).text()
  if (response.statusCode !== 200) throw new Error(`the agent answers ${response.statusCode}: ${text}`)
  return JSON.parse(text)
}
