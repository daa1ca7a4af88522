import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { deferWriteFailure } from './deferred-write-failure.ts'

const server = `
  require('node:net').createServer((socket) => {
    socket.once('data', () => socket.write('refused', () => socket.resetAndDestroy()))
  }).listen(0, '127.0.0.1', function () { console.log(this.address().port) })`

test('data that arrived before a failed write is read, and then the socket fails', async () => {
  const child = spawn(process.execPath, ['-e', server], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [port] = await once(child.stdout, 'data')
    const socket = connect(Number(port), '127.0.0.1')
    deferWriteFailure(socket)
    let received = ''
    let isFailedAtEnd = false
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.on('end', () => {
      isFailedAtEnd = socket.errored !== null
    })
    const failed = once(socket, 'error')
    await once(socket, 'connect')

    socket.write('part')
    // The server responds and resets the connection while this process cannot read.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
    for (let part = 0; part < 3; part += 1) socket.write('part')
    const [error] = await failed
    await once(socket, 'close')

    assert.equal(received, 'refused')
    assert.match(error.code, /^(EPIPE|ECONNRESET)$/)
    assert.ok(isFailedAtEnd || !socket.readableEnded, 'nobody takes what has come for all')
  } finally {
    child.kill()
  }
})
