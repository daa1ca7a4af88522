import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type MarkdownIt from 'markdown-it'

/** The folder of the guides, which are the documentation of the repository. */
const folder = join(import.meta.dirname, '../../../../../docs')

export interface Guide {
  readonly name: string
  readonly title: string
  /** Safe to embed: HTML in the text is escaped, and links cannot have schemes that run scripts. */
  readonly html: string
}

/** All guides, by title. */
export async function readGuides(): Promise<readonly Guide[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.md'))
  const names = new Set(files.map((file) => basename(file, '.md')))
  // Loaded when somebody reads.
  const { default: MarkdownIt } = await import('markdown-it')
  const render = guideRenderer(new MarkdownIt({ html: false }), names)
  const guides = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(join(folder, file), 'utf8')
      const name = basename(file, '.md')
      return { name, title: /^# (.+)$/m.exec(text)?.[1] ?? name, html: render(text) }
    }),
  )
  return guides.toSorted((one, other) => one.title.localeCompare(other.title, 'en'))
}

/** The pictures of the guides, by name. */
export async function readPictures(): Promise<ReadonlyMap<string, Buffer>> {
  const pictures = join(folder, 'images')
  const files = (await readdir(pictures)).filter((file) => file.endsWith('.png'))
  return new Map(await Promise.all(files.map(async (file) => [file, await readFile(join(pictures, file))] as const)))
}

function guideRenderer(
  markdown: InstanceType<typeof MarkdownIt>,
  guides: ReadonlySet<string>,
): (text: string) => string {
  const { rules } = markdown.renderer
  rules.heading_open = (tokens, index) => {
    const id = anchorOf(tokens[index + 1]?.content ?? '')
    return `<${tokens[index]?.tag} id="${markdown.utils.escapeHtml(id)}">`
  }
  rules.table_open = () => '<div class="table" role="region" aria-label="Table" tabindex="0"><table>\n'
  rules.table_close = () => '</table></div>\n'
  const fence = rules.fence
  rules.fence = (...given) => (fence?.(...given) ?? '').replace('<pre>', '<pre tabindex="0">')
  rules.link_open = (tokens, index, options, _environment, renderer) => {
    const token = tokens[index]
    token?.attrSet('href', addressOf(String(token.attrGet('href') ?? ''), guides))
    return renderer.renderToken(tokens, index, options)
  }
  const image = rules.image
  rules.image = (...given) => {
    const token = given[0][given[1]]
    token?.attrSet('src', pictureAddress(String(token.attrGet('src') ?? '')))
    return image?.(...given) ?? ''
  }
  return (text) => markdown.render(text)
}

/** Generates the same anchors as GitHub, so that links work in both places. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(/\s/g, '-')
}

/** Guides link to each other as files. Other files of the repository are not served. */
function addressOf(href: string, guides: ReadonlySet<string>): string {
  if (/^https?:/.test(href) || href.startsWith('#')) return href
  const [path = '', anchor] = href.split('#', 2)
  const name = basename(path, '.md')
  const hash = anchor === undefined ? '' : `#${anchor}`
  if (guides.has(name) && path.endsWith('.md')) return `/docs/guides/${name}${hash}`
  if (path.startsWith('images/')) return pictureAddress(path)
  return basename(path) === 'openapi.json' ? '/openapi.json' : '/docs/guides'
}

function pictureAddress(path: string): string {
  return `/docs/pictures/${basename(path)}`
}
