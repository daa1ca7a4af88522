import { writeFile } from 'node:fs/promises'
import { type AxNode, snapshotOf } from './accessibility-tree.ts'
import type { AttachedTab } from './attached-tab.ts'
import { js, objectOf } from './evaluate.ts'
import { describePage } from './in-page.js'

interface Metrics {
  readonly cssVisualViewport: {
    readonly clientWidth: number
    readonly clientHeight: number
    readonly pageX: number
    readonly pageY: number
  }
  readonly cssContentSize: { readonly width: number; readonly height: number }
}

export function pageHelpers(tab: AttachedTab) {
  async function gotoUrl(url: string) {
    return tab.send('Page.navigate', { url })
  }

  async function pageInfo() {
    const { url, title } = await tab.current()
    // A page with an open dialog does not answer.
    if (tab.dialog) return { url, title, dialog: tab.dialog }
    const shown = (await js(tab, describePage)) as object
    return { ...shown, dialog: null }
  }

  async function accessibilitySnapshot() {
    const { nodes } = await tab.send('Accessibility.getFullAXTree')
    return snapshotOf(nodes as readonly AxNode[])
  }

  /** The extension of the file name determines the format. */
  async function captureScreenshot(path = '/tmp/shot.png', fullPage = false, maxDim?: number): Promise<string> {
    const [, ending = 'png'] = /\.(\w+)$/.exec(path.toLowerCase()) ?? []
    const format = { jpg: 'jpeg', jpeg: 'jpeg', webp: 'webp' }[ending] ?? 'png'
    const { cssVisualViewport: view, cssContentSize: content }: Metrics = await tab.send('Page.getLayoutMetrics')
    const [width, height] = fullPage ? [content.width, content.height] : [view.clientWidth, view.clientHeight]
    const [x, y] = fullPage ? [0, 0] : [view.pageX, view.pageY]
    const scale = maxDim === undefined ? 1 : Math.min(1, maxDim / Math.max(width, height))
    const clip = fullPage || scale < 1 ? { clip: { x, y, width, height, scale } } : {}
    const { data } = await tab.send('Page.captureScreenshot', { format, captureBeyondViewport: fullPage, ...clip })
    await writeFile(path, Buffer.from(data, 'base64'))
    return path
  }

  /** The paths are files of the session. */
  async function uploadFile(selector: string, paths: string | readonly string[]) {
    const objectId = await objectOf(tab, selector)
    if (objectId === undefined) throw new Error(`${selector}: there is no match.`)
    await tab.send('DOM.setFileInputFiles', { objectId, files: [paths].flat() })
  }

  return { gotoUrl, pageInfo, accessibilitySnapshot, captureScreenshot, uploadFile }
}
