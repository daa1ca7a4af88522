const retryMilliseconds = 3000

/**
 * Reads a stream until the signal aborts: again when its connection has broken off, and only while somebody can see the
 * page. A browser opens few connections to a server, and pages in the background would take those of the one in front.
 */
export async function keepFollowing(signal: AbortSignal, read: (signal: AbortSignal) => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    if (isHidden()) await nextVisibilityChange(signal)
    else if (await readWhileVisible(signal, read))
      await new Promise((resolve) => setTimeout(resolve, retryMilliseconds))
  }
}

/** Whether it has ended by itself. */
async function readWhileVisible(signal: AbortSignal, read: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
  const hidden = new AbortController()
  const leave = () => {
    if (isHidden()) hidden.abort()
  }
  document.addEventListener('visibilitychange', leave)
  try {
    await read(AbortSignal.any([signal, hidden.signal]))
  } catch {
    // Whoever is signed out sees it on the page.
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
