import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import MiniSearch from 'minisearch'

interface Section {
  readonly page: string
  readonly title: string
  readonly text: string
}

const maxResults = 5

/** Searches sections of the documentation, which is read on first use. */
export class DocsSearch {
  readonly #folder: string
  #index: Promise<MiniSearch<Section & { readonly id: number }>> | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  async find(query: string): Promise<readonly Section[]> {
    this.#index ??= this.#read()
    const index = await this.#index
    return index
      .search(query)
      .slice(0, maxResults)
      .map(({ page, title, text }) => ({ page, title, text }))
  }

  async #read(): Promise<MiniSearch<Section & { readonly id: number }>> {
    const pages = (await readdir(this.#folder)).filter((name) => name.endsWith('.md')).toSorted()
    const texts = await Promise.all(pages.map((page) => readFile(join(this.#folder, page), 'utf8')))
    const sections = texts.flatMap((text, index) => sectionsOf(pages[index] ?? '', text))
    const index = new MiniSearch<Section & { readonly id: number }>({
      fields: ['title', 'text'],
      storeFields: ['page', 'title', 'text'],
      searchOptions: { boost: { title: 3 }, prefix: true, fuzzy: 0.1 },
    })
    index.addAll(sections.map((section, id) => ({ ...section, id })))
    return index
  }
}

function sectionsOf(page: string, text: string): readonly Section[] {
  return text.split(/^(?=#{1,3} )/m).flatMap((part) => {
    const [, title, body] = /^#{1,3} (.*)\n([\s\S]*)$/.exec(part) ?? []
    return title && body?.trim() ? [{ page, title, text: body.trim() }] : []
  })
}
