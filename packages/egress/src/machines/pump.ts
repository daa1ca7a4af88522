import type { Socket } from 'node:net'
import type { MachineShare } from './machine-share.ts'

interface PumpOptions {
  readonly from: Socket
  readonly to: Socket
  readonly share: MachineShare
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
export function pump({ from, to, share, transform, onEnd, onFailure }: PumpOptions): { stop(): void } {
  let queued = 0
  let isWaiting = false
  const countQueued = () => {
    const added = to.writableLength - queued
    queued += added
    if (added !== 0 && !share.addQueued(added)) onFailure(new Error('too much waits for slow readers'))
  }
  const copy = (chunk: Buffer) => {
    const isTaken = to.write(chunk)
    countQueued()
    if (!share.turn.spend(chunk.length)) {
      from.pause()
      awaitTurn()
    } else if (!isTaken && queued > share.queueLimit) {
      from.pause()
    }
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
    if (!to.writable) return
    if (!transform) return copy(chunk)
    try {
      copy(transform(chunk))
    } catch (error) {
      onFailure(error)
    }
  }
  const drained = () => {
    countQueued()
    if (!isWaiting && from.isPaused()) awaitTurn()
  }
  const forget = () => {
    share.addQueued(-queued)
    queued = 0
  }

  from.on('data', read).once('end', onEnd)
  to.on('drain', drained).once('close', forget)
  return {
    stop() {
      from.off('data', read).off('end', onEnd)
      to.off('drain', drained).off('close', forget)
      forget()
    },
  }
}
