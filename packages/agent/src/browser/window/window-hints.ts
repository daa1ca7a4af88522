/** A property of windows, by its number in the protocol. */
const normalHints = 40

/**
 * Takes from all windows of a display the wish for a smallest size, so that the window manager makes them as small as
 * the display. Chromium wishes for 500 pixels, and shows its page well in less.
 */
export async function dropSmallestSizes(displayName: string): Promise<void> {
  // Loaded here: most sessions never have a size that needs it.
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
    // A window may have gone since it was listed.
    const tree = await display.ask<{ children: readonly number[] }>('QueryTree', window).catch(() => undefined)
    return tree?.children ?? []
  }
}
