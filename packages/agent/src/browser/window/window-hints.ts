/** The atom number of the window property WM_NORMAL_HINTS. */
const normalHints = 40

/**
 * Removes the minimum size from all windows of a display, so that the window manager makes them as small as the
 * display. Chromium requests 500 pixels, but displays its page well in less.
 */
export async function dropSmallestSizes(displayName: string): Promise<void> {
  // Loaded here because few sessions need it.
  const { XConnection } = await import('../../computer/display/x-connection.ts')
  const display = await XConnection.open(displayName)
  try {
    for (const frame of await childrenOf(display.root)) {
      for (const window of [frame, ...(await childrenOf(frame))]) display.send('DeleteProperty', window, normalHints)
    }
    await display.sync()
  } finally {
    display.close()
  }

  async function childrenOf(window: number): Promise<readonly number[]> {
    // A window may have closed since it was listed.
    const tree = await display.ask<{ children: readonly number[] }>('QueryTree', window).catch(() => undefined)
    return tree?.children ?? []
  }
}
