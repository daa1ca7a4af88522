import type { Socket } from 'node:net'
import { BulkSocket } from '@berth/runtime/stream/bulk-socket.ts'
import type { MachineShare } from './machine-share.ts'

interface PumpOptions {
  readonly from: Socket
  readonly to: Socket
  readonly share: MachineShare
  /** What goes on in the place of a chunk. Absent: the chunk. */
  readonly transform?: ((chunk: Buffer) => Buffer) | undefined
  /** Called once, when all has been handed over that comes. */
  readonly onEnd: () => void
  /** Called when `transform` throws, and when the machine has too much waiting for slow readers. */
  readonly onFailure: (error: unknown) => void
}

/** Copies bytes in one direction, at the pace of the slower side and in turns with the other machines, until stopped. */
export function pump({ from, to, share, transform, onEnd, onFailure }: PumpOptions): { stop(): void } {
  let queued = 0
  let isWaiting = false
  const countQueued = () => {
    const added = to.writableLength - queued
    queued += added
    if (added !== 0 && !share.addQueued(added)) onFailure(new Error('too much waits for slow readers'))
  }
  /** Whether nothing of the chunk is queued. */
  const copy = (chunk: Buffer) => {
    const isTaken = to.write(chunk)
    countQueued()
    if (!share.turn.spend(chunk.length)) {
      from.pause()
      awaitTurn()
    } else if (!isTaken && queued > share.queueLimit) {
      from.pause()
    }
    return to.writableLength === 0
  }
  const awaitTurn = () => {
    isWaiting = true
    share.turn.next(goOn)
  }
  const goOn = () => {
    isWaiting = false
    if (!to.writableNeedDrain || to.writableLength <= share.queueLimit) from.resume()
  }

  const read = (chunk: Buffer) => {
    if (!to.writable) return true
    if (!transform) return copy(chunk)
    try {
      copy(transform(chunk))
    } catch (error) {
      onFailure(error)
    }
    return false
  }
  const drained = () => {
    countQueued()
    if (!isWaiting && from.isPaused()) awaitTurn()
  }
  const forget = () => {
    share.addQueued(-queued)
    queued = 0
  }

  from.once('end', onEnd)
  if (from instanceof BulkSocket) {
    from.consume(read)
    from.resume()
  } else {
    from.on('data', read)
  }
  to.on('drain', drained).once('close', forget)
  return {
    stop() {
      from.off('data', read).off('end', onEnd)
      to.off('drain', drained).off('close', forget)
      forget()
    },
  }
}
