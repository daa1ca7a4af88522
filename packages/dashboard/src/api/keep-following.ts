const retryMilliseconds = 3000

/**
 * Reads a stream until the signal aborts: reconnects after a failure, and only while the page is visible. A browser
 * opens few connections to a server, and background pages would use up those of the visible one.
 */
export async function keepFollowing(signal: AbortSignal, read: (signal: AbortSignal) => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    if (isHidden()) await nextVisibilityChange(signal)
    else if (await readWhileVisible(signal, read))
      await new Promise((resolve) => setTimeout(resolve, retryMilliseconds))
  }
}

/** Returns whether it has ended by itself. */
async function readWhileVisible(signal: AbortSignal, read: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
  const hidden = new AbortController()
  const leave = () => {
    if (isHidden()) hidden.abort()
  }
  document.addEventListener('visibilitychange', leave)
  try {
    await read(AbortSignal.any([signal, hidden.signal]))
  } catch {
    // The page itself shows that the user is signed out.
  } finally {
    document.removeEventListener('visibilitychange', leave)
  }
  return !signal.aborted && !hidden.signal.aborted
}

function isHidden(): boolean {
  return document.visibilityState === 'hidden'
}

function nextVisibilityChange(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const changed = new AbortController()
    const done = () => {
      changed.abort()
      resolve()
    }
    signal.addEventListener('abort', done, { signal: changed.signal })
    document.addEventListener('visibilitychange', done, { signal: changed.signal })
  })
}
