import { type MessagePort, parentPort } from 'node:worker_threads'
import WebSocket from 'ws'
import { toDevToolsServer } from '../browser/devtools-server.ts'
import type { FromGate, ToGate } from '../playwright/gate-messages.ts'
import { TabGate } from '../playwright/tab-gate.ts'

/* A separate thread beside a caller's code, which keeps running while that code blocks. */
const client = parentPort as MessagePort
let connection: { readonly socket: WebSocket; readonly gate: TabGate } | undefined

client.on('message', (message: ToGate) => {
  if (typeof message === 'string') connection?.gate.fromClient(message)
  else if (message.open === undefined) connection?.socket.terminate()
  else connection = connect(message.open, message)
})

function connect(address: string, { targetId, tabLimitMilliseconds = 0 }: Exclude<ToGate, string>): typeof connection {
  const socket = new WebSocket(address, { ...toDevToolsServer, maxPayload: 0, perMessageDeflate: false })
  const tell = (message: FromGate) => client.postMessage(message)
  const gate = new TabGate({
    targetId,
    tabLimitMilliseconds,
    toChromium: (text) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(text)
    },
    toClient: tell,
  })
  socket.on('open', () => tell({ event: 'opened' }))
  socket.on('message', (data) => gate.fromChromium(String(data)))
  socket.on('error', () => {}) // 'close' follows.
  socket.on('close', () => {
    gate.close()
    tell({ event: 'closed' })
  })
  return { socket, gate }
}
