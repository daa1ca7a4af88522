import { randomInt } from 'node:crypto'
import type { AddCustomWebMcpTools, CustomWebMcpTool } from '@berth/contract/agent/operations/webmcp-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { matchesUrl } from './url-patterns.ts'

/** For all tools together, including their sources. */
const maxSourceCharacters = 64_000_000
const maxTools = 1_000

/** The source of tools that were added together: each tool is one of its definitions. */
export interface ToolSource {
  readonly text: string
}

export interface CustomTool extends CustomWebMcpTool {
  readonly source: ToolSource
  /** Its position among the definitions of the source. */
  readonly index: number
}

export type ToolDefinition = Pick<CustomWebMcpTool, 'kind' | 'match' | 'tool'>

/** The tools that callers have added, until they remove them or the session ends. */
export class CustomTools {
  #tools: readonly CustomTool[] = []

  list(): readonly CustomTool[] {
    return this.#tools
  }

  find(id: string): CustomTool | undefined {
    return this.#tools.find((tool) => tool.id === id)
  }

  thatMatch(url: string): readonly CustomTool[] {
    return this.#tools.filter(({ match }) => matchesUrl(match.url_patterns, url))
  }

  /** Adds all or none. Synchronous, so that of two callers with the same name the later one is refused. */
  add(asked: AddCustomWebMcpTools, definitions: readonly ToolDefinition[]): readonly CustomTool[] {
    const { namespace, force_overwrite_namespace: replaces } = asked
    const others = replaces ? this.#tools.filter((tool) => tool.namespace !== namespace) : this.#tools
    const taken = new Set(others.filter((tool) => tool.namespace === namespace).map(({ tool }) => tool.name))
    for (const { tool } of definitions) {
      if (taken.has(tool.name)) throw new BerthError('custom_tool_name_taken', { name: tool.name, namespace })
      taken.add(tool.name)
    }
    const source = { text: asked.source }
    const added = definitions.map((definition, index) => ({ ...definition, id: newId(), namespace, source, index }))
    const all = [...others, ...added]
    const characters = [...new Set(all.map((tool) => tool.source))].reduce((sum, { text }) => sum + text.length, 0)
    if (all.length > maxTools || characters > maxSourceCharacters) {
      throw new BerthError('invalid_input', {
        reason: `source: a session has at most ${maxTools} custom tools, from ${maxSourceCharacters} characters of source.`,
      })
    }
    this.#tools = all
    return added
  }

  remove(id: string): void {
    if (!this.find(id)) throw new BerthError('custom_tool_not_found', { id })
    this.#tools = this.#tools.filter((tool) => tool.id !== id)
  }
}

/** The tool as returned to callers. */
export function publicTool({ id, namespace, kind, match, tool }: CustomTool): CustomWebMcpTool {
  return { id, namespace, kind, match, tool }
}

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'

function newId(): string {
  return `ct_${Array.from({ length: 24 }, (_, index) => letters[randomInt(index === 0 ? 26 : 36)]).join('')}`
}
