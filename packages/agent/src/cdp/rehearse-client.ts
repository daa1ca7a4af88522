import { once } from 'node:events'
import type { Server } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { cdpUpgrade } from '@berth/contract/agent/agent-upgrades.ts'
import WebSocket from 'ws'

/** Connects to the agent as a CDP client would, as a warm-up of the agent and of Chromium's DevTools server. */
export async function rehearseClient(agent: Server, runFolder: string): Promise<void> {
  const path = join(runFolder, 'rehearsal.sock')
  const listener = createServer((socket) => agent.emit('connection', socket)).listen(path)
  await once(listener, 'listening')
  try {
    const client = new WebSocket(`ws+unix:${path}:${cdpUpgrade.path}`)
    await once(client, 'open')
    client.send(JSON.stringify({ id: 1, method: 'Browser.getVersion' }))
    await once(client, 'message')
    client.close()
    await once(client, 'close')
  } finally {
    listener.close()
  }
}
