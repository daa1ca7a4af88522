import { z } from 'zod'
import type { DocsSearch } from '../docs-search.ts'
import type { Tool } from '../tool.ts'

export function docsTool(docs: DocsSearch): Tool {
  return {
    name: 'search_docs',
    toolset: 'docs',
    help: 'Searches the documentation of berth and returns the best matching sections.',
    isOfProject: false,
    input: { query: z.string() },
    actions: { endpoints: [], run: async ({ query }) => docs.find(query) },
  }
}
