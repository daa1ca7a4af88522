import type { PageElement, PageNode } from './dom.ts'

const blocks = new Set(
  (
    'address article aside blockquote dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li ' +
    'main ol p pre section summary table tbody thead tfoot tr ul'
  ).split(' '),
)
const spaced = new Set('p h1 h2 h3 h4 h5 h6 pre blockquote table ul ol dl figure section article'.split(' '))

/** Lays out the text like a browser: each block is a line, and cells are separated by tabs. */
export function toText(root: PageElement): string {
  const lines: string[] = []
  let line = ''
  const endLine = () => {
    lines.push(line.replaceAll(/[^\S\t]+/g, ' ').trim())
    line = ''
  }
  const walk = (node: PageNode, isPreformatted: boolean): void => {
    if (node.nodeType === 3) {
      const text = node.textContent ?? ''
      if (!isPreformatted) line += text.replaceAll(/\s+/g, ' ')
      else {
        const [first = '', ...rest] = text.split('\n')
        line += first
        for (const next of rest) {
          lines.push(line.trimEnd())
          line = next
        }
      }
      return
    }
    if (node.nodeType !== 1) return
    const name = (node as PageElement).localName
    if (name === 'br') {
      endLine()
      return
    }
    const isBlock = blocks.has(name)
    if (isBlock && line.trim() !== '') endLine()
    if (spaced.has(name)) lines.push('')
    for (const child of node.childNodes) walk(child, isPreformatted || name === 'pre')
    if (name === 'td' || name === 'th') line += '\t'
    if (isBlock && line.trim() !== '') endLine()
    if (spaced.has(name)) lines.push('')
  }
  walk(root, false)
  if (line.trim() !== '') endLine()
  return lines
    .join('\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
}
