import { Script } from 'node:vm'
import type { AttachedTab } from '../repl/helpers/attached-tab.ts'
import { withImports } from '../repl/module-globals.ts'
import type { Deadline } from '../script-process/deadline.ts'
import type { FromToolProcess, ToToolProcess } from './tool-process-messages.ts'

type Task = Exclude<ToToolProcess, { type: 'answer' }>

interface Definition {
  readonly kind?: unknown
  readonly match?: unknown
  readonly tool?: unknown
  readonly execute?: unknown
}

const keptSources = 20

/** Evaluates the sources of custom tools, and executes those that work outside of pages. */
export class ToolRunner {
  readonly #tab: AttachedTab
  readonly #deadline: Deadline
  /** Evaluated sources: variables that their functions share last from one use to the next. */
  readonly #known = new Map<string, Promise<readonly Definition[]>>()

  constructor({ tab, deadline }: { readonly tab: AttachedTab; readonly deadline: Deadline }) {
    this.#tab = tab
    this.#deadline = deadline
  }

  async run(task: Task): Promise<FromToolProcess> {
    try {
      const result = task.type === 'define' ? await this.#define(task.source) : await this.#execute(task)
      return { type: 'done', ...(result !== undefined && { result: JSON.parse(JSON.stringify(result)) }) }
    } catch (error) {
      return { type: 'failed', error: String(error) }
    }
  }

  async #define(source: string): Promise<unknown> {
    const definitions = await this.#definitions(source)
    return definitions.map(({ kind, match, tool, execute }) => ({
      kind,
      match,
      tool,
      executes: typeof execute === 'function',
    }))
  }

  async #execute({ source, index, input, matches, timeoutMilliseconds }: Extract<Task, { type: 'execute' }>) {
    this.#deadline.set(timeoutMilliseconds)
    const [page] = matches
    if (page) await this.#tab.workIn(page.targetId)
    const definition = (await this.#definitions(source))[index] as Required<Definition>
    const execute = definition.execute as (input: unknown, context: object) => unknown
    return execute.call(definition, input, { matches })
  }

  #definitions(source: string): Promise<readonly Definition[]> {
    const known = this.#known.get(source)
    if (known) return known
    const definitions = evaluate(source)
    this.#known.set(source, definitions)
    if (this.#known.size > keptSources) this.#known.delete(this.#known.keys().next().value as string)
    return definitions
  }
}

async function evaluate(source: string): Promise<readonly Definition[]> {
  const value: unknown = await new Script(`(${withImports(source)}\n)`, { filename: 'source' }).runInThisContext()
  const definitions = [value].flat()
  if (definitions.some((definition) => typeof definition !== 'object' || definition === null))
    throw new TypeError('the expression must yield a list of objects')
  return definitions as readonly Definition[]
}
