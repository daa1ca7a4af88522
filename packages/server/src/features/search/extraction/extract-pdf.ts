import { getDocument, VerbosityLevel } from 'pdfjs-dist/legacy/build/pdf.mjs'

const maxPages = 2_000

/** Extracts the text of a PDF document, page by page. */
export async function extractPdf(bytes: Uint8Array, maxCharacters: number): Promise<string> {
  const task = getDocument({
    // A copy, because the library detaches the buffer.
    data: Uint8Array.from(bytes),
    useSystemFonts: false,
    disableFontFace: true,
    stopAtErrors: false,
    verbosity: VerbosityLevel.ERRORS,
  })
  try {
    const document = await task.promise
    const pages: string[] = []
    let length = 0
    for (let number = 1; number <= Math.min(document.numPages, maxPages) && length < maxCharacters; number++) {
      const page = await document.getPage(number)
      const { items } = await page.getTextContent()
      const text = linesOf(items as readonly TextItem[])
      pages.push(text)
      length += text.length
      page.cleanup()
    }
    return pages.join('\n\n')
  } finally {
    await task.destroy()
  }
}

interface TextItem {
  readonly str?: string
  readonly hasEOL?: boolean
  readonly height?: number
  /** The last two values are its position. */
  readonly transform?: readonly number[]
}

/** A larger distance between lines starts a paragraph. */
function linesOf(items: readonly TextItem[]): string {
  const lines: string[] = []
  let line = ''
  let bottom: number | undefined
  for (const { str = '', hasEOL = false, height = 0, transform } of items) {
    const y = transform?.[5]
    if (line === '' && y !== undefined && bottom !== undefined && bottom - y > 2 * Math.max(height, 1)) lines.push('')
    line += str
    if (!hasEOL) continue
    lines.push(line.trimEnd())
    line = ''
    bottom = y
  }
  lines.push(line)
  return lines.join('\n').trim()
}
