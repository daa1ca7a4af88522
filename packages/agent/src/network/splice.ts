import type { Socket } from 'node:net'
import type { BulkSocket } from '@berth/runtime/stream/bulk-socket.ts'
import { deferWriteFailure } from '@berth/runtime/stream/deferred-write-failure.ts'
import type { EgressConnection } from './egress-uplink.ts'

/** Connects a program's connection to the one that egress has opened for it, until both directions have ended. */
export function splice(
  program: Socket,
  { socket: egress, received, farEnd, broken, announceEnd }: EgressConnection,
): void {
  deferWriteFailure(program)
  program.on('error', () => {}) // 'close' follows.
  program.once('close', (hasFailed) => {
    if (hasFailed || !egress.writableEnded) announceEnd('reset')
    egress.destroy()
  })
  program.once('end', () => {
    if (program.errored) return
    announceEnd('end')
    egress.end()
  })
  egress.once('end', () => {
    farEnd.then((how) => (how === 'end' ? program.end() : resetBehindAll(program))).catch(() => resetBehindAll(program))
  })
  egress.once('close', () => {
    if (!egress.readableEnded || !egress.writableFinished) resetBehindAll(program)
  })
  void broken.then(() => {
    // Otherwise there may still be data to read, followed by an end.
    if (egress.readableEnded) resetBehindAll(program)
  })
  if (egress.destroyed) {
    resetBehindAll(program)
    return
  }
  program.pipe(egress, { end: false })
  copy(egress, received, program)
}

function copy(egress: BulkSocket, received: Buffer, program: Socket): void {
  if (received.length > 0) program.write(received)
  egress.consume((chunk) => {
    if (!program.write(chunk)) egress.pause()
    return program.writableLength === 0
  })
  program.on('drain', () => egress.resume())
  egress.resume()
}

/** Lets the program read earlier data first, such as a response that ends an upload. */
function resetBehindAll(program: Socket): void {
  const reset = () => void program.resetAndDestroy()
  if (!program.writableEnded) program.write('', reset)
  else if (program.writableFinished) reset()
  else program.once('finish', reset)
}
