import { callAgent } from '../agent-link/agent-client.ts'
import type { ReachableMachine } from '../drivers/driver.ts'

/** Sends a request to a machine's agent on a new connection, and returns the JSON response. */
export async function ask(machine: ReachableMachine, path: string, body?: unknown): Promise<unknown> {
  const method = body === undefined ? 'GET' : 'POST'
  const response = await callAgent(machine, { method, path, ...(body !== undefined && { body: JSON.stringify(body) }) })
  const text = await new Response(response).text()
  if (response.statusCode !== 200) throw new Error(`the agent answers ${response.statusCode}: ${text}`)
  return JSON.parse(text)
}
