/** The longest delay of a timer: three and a half weeks. */
const maxMilliseconds = 2 ** 31 - 1

interface Deadline {
  /** Resolves when the time has passed, or the signal has aborted; never with 0 seconds and no signal. */
  readonly over: Promise<{ readonly isOver: true }>
  cancel(): void
}

export function deadline(seconds: number, signal?: AbortSignal): Deadline {
  const { promise, resolve } = Promise.withResolvers<{ readonly isOver: true }>()
  const end = () => resolve({ isOver: true })
  const timer = seconds > 0 ? setTimeout(end, Math.min(seconds * 1000, maxMilliseconds)) : undefined
  if (signal?.aborted) end()
  else signal?.addEventListener('abort', end)
  return {
    over: promise,
    cancel: () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
    },
  }
}
