import type { Socket } from 'node:net'
import { BulkSocket } from '@berth/runtime/stream/bulk-socket.ts'
import type { MachineQuota } from '../machine-quota.ts'

interface PumpOptions {
  readonly from: Socket
  readonly to: Socket
  readonly quota: MachineQuota
  /** Replaces each chunk. When absent, chunks pass unchanged. */
  readonly transform?: ((chunk: Buffer) => Buffer) | undefined
  /** Called once, when everything has been written to the destination. */
  readonly onEnd: () => void
  /** Called when `transform` throws, or when the machine has too many bytes queued. */
  readonly onFailure: (error: unknown) => void
}

/**
 * Copies bytes in one direction until stopped. Follows the pace of the slower side and shares processing time with
 * other machines.
 */
export function pump({ from, to, quota, transform, onEnd, onFailure }: PumpOptions): { stop(): void } {
  let queued = 0
  let isWaiting = false
  const countQueued = () => {
    const added = to.writableLength - queued
    queued += added
    if (added !== 0 && !quota.addQueued(added))
      onFailure(new Error('the machine has too many bytes queued for slow readers'))
  }
  /** Whether nothing of the chunk is queued. */
  const copy = (chunk: Buffer) => {
    const isTaken = to.write(chunk)
    countQueued()
    if (!quota.timeSlice.spend(chunk.length)) {
      from.pause()
      awaitSlice()
    } else if (!isTaken && queued > quota.queueLimit) {
      from.pause()
    }
    return to.writableLength === 0
  }
  const awaitSlice = () => {
    isWaiting = true
    quota.timeSlice.resumeLater(resume)
  }
  const resume = () => {
    isWaiting = false
    if (!to.writableNeedDrain || to.writableLength <= quota.queueLimit) from.resume()
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
    if (!isWaiting && from.isPaused()) awaitSlice()
  }
  const forget = () => {
    quota.addQueued(-queued)
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
