import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Machine } from '../drivers/driver.ts'

/** Sends a request to a machine's agent on a new connection, and returns the JSON response. */
export async function ask(machine: Machine, path: string, body?: unknown): Promise<unknown> {
  const method = body === undefined ? 'GET' : 'POST'
  const asking = request({ socketPath: machine.agentSocket, method, path, agent: false })
  asking.end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  const text = await new Response(response).text()
  if (response.statusCode !== 200) throw new Error(`the agent answers ${response.statusCode}: ${text}`)
  return JSON.parse(text)
}
