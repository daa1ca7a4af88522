import type { Socket } from 'node:net'

const halfClosedLimitMilliseconds = 60_000

/**
 * Copies bytes both ways until both sides have ended, at the pace of the slower one. Either side may end first and
 * still receive; the other then has a minute for each next byte. A side that breaks off takes the other with it.
 */
export function splice(one: Socket, other: Socket): void {
  copy(one, other)
  copy(other, one)
}

function copy(from: Socket, to: Socket): void {
  from.allowHalfOpen = true
  from.setTimeout(0)
  from.pipe(to)
  from.once('end', () => to.setTimeout(halfClosedLimitMilliseconds, () => to.destroy()))
  from.once('close', () => {
    const isComplete = from.readableEnded && from.writableFinished
    if (!isComplete) to.destroy()
  })
}
