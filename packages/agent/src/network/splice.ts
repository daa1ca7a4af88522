import type { Socket } from 'node:net'
import type { BulkSocket } from '@berth/runtime/stream/bulk-socket.ts'
import { deferWriteFailure } from '@berth/runtime/stream/deferred-write-failure.ts'
import type { EgressConnection } from './egress-uplink.ts'

/** Joins a program's connection to the one that egress has made for it, until both directions have ended. */
export function splice(program: Socket, { socket: egress, received, farEnd, broken, tellEnd }: EgressConnection): void {
  deferWriteFailure(program)
  program.on('error', () => {}) // A close follows.
  program.once('close', (hasFailed) => {
    if (hasFailed || !egress.writableEnded) tellEnd('reset')
    egress.destroy()
  })
  program.once('end', () => {
    if (program.errored) return
    tellEnd('end')
    egress.end()
  })
  egress.once('end', () => {
    farEnd.then((how) => (how === 'end' ? program.end() : resetBehindAll(program))).catch(() => resetBehindAll(program))
  })
  egress.once('close', () => {
    if (!egress.readableEnded || !egress.writableFinished) resetBehindAll(program)
  })
  void broken.then(() => {
    // Otherwise something may still be to be read, behind which comes an end.
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

/** What has come before is for the program to read: an answer that ends an upload, say. */
function resetBehindAll(program: Socket): void {
  const reset = () => void program.resetAndDestroy()
  if (!program.writableEnded) program.write('', reset)
  else if (program.writableFinished) reset()
  else program.once('finish', reset)
}
