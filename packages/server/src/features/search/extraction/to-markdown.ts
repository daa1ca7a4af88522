import { gfm } from '@joplin/turndown-plugin-gfm'
import Turndown from 'turndown'
import type { PageElement } from './dom.ts'

const turndown = new Turndown({
  headingStyle: 'atx',
  codeBlockStyle: 'fenced',
  bulletListMarker: '-',
  hr: '---',
  emDelimiter: '*',
})
turndown.use(gfm)
// Data URLs of images are omitted, because nobody can open them.
turndown.addRule('images', {
  filter: 'img',
  replacement: (_content, node) => {
    const src = node.getAttribute('src')
    const label = (node.getAttribute('alt') ?? '').replaceAll(/\s+/g, ' ').trim()
    return src && label ? `![${label.replaceAll(/[[\]]/g, '\\$&')}](${src})` : label
  },
})
turndown.addRule('languageOfCode', {
  filter: (node) => node.nodeName === 'PRE',
  replacement: (_content, element) => {
    const names = `${element.className} ${element.querySelector('code')?.className ?? ''}`
    const language = /(?:language|lang|highlight-source|brush:)[-\s]?([\w+#-]+)/.exec(names)?.[1] ?? ''
    const code = (element.textContent ?? '').replace(/\n$/, '')
    const fence = '`'.repeat(longestTicks(code))
    return `\n\n${fence}${language}\n${code}\n${fence}\n\n`
  },
})

export function toMarkdown(content: PageElement): string {
  // Passed as text, because turndown reads tables through properties that only its own parser has.
  return turndown
    .turndown(content.outerHTML)
    .replaceAll(/[^\S\n]+$/gm, '')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim()
}

/** A fence must be longer than every run of backticks in its code. */
function longestTicks(code: string): number {
  return [...code.matchAll(/`+/g)].reduce((longest, [ticks]) => Math.max(longest, ticks.length + 1), 3)
}
