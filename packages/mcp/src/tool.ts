import type { Endpoint } from '@berth/contract/endpoint.ts'
import { z } from 'zod'
import type { Api, ApiRequest } from './api.ts'
import type { Toolset } from './toolsets.ts'

// biome-ignore lint/suspicious/noExplicitAny: the input of each tool is checked by its schema, and by the API.
export type Arguments = Readonly<Record<string, any>>

/** A response that is not JSON. */
export class Content {
  readonly parts: readonly ContentPart[]

  constructor(parts: readonly ContentPart[]) {
    this.parts = parts
  }
}

export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }

/** The action of a tool: one request, or code that sends several. */
export type Action =
  | {
      readonly endpoint: Endpoint
      /** Names of the required arguments. */
      readonly needs?: readonly string[]
      readonly request?: (args: Arguments) => ApiRequest
      /** Added to an empty list. */
      readonly hint?: string
      readonly reply?: (reply: Arguments, args: Arguments) => unknown
    }
  | {
      readonly endpoints: readonly Endpoint[]
      readonly needs?: readonly string[]
      readonly run: (args: Arguments, api: Api) => Promise<unknown>
    }

export interface Tool {
  readonly name: string
  readonly toolset: Toolset | undefined
  readonly help: string
  readonly input: z.ZodRawShape
  /** Selected by the argument `action`. A tool with a single action has no such argument. */
  readonly actions: Readonly<Record<string, Action>> | Action
  /** Whether it belongs to a project, and has the argument `project`. */
  readonly isOfProject: boolean
}

/** Casts away the types of an endpoint's parts. */
export function at(endpoint: unknown): Endpoint {
  return endpoint as Endpoint
}

export function isAction(actions: Tool['actions']): actions is Action {
  return 'endpoint' in actions || 'endpoints' in actions
}

export function endpointsOf({ actions }: Tool): readonly Endpoint[] {
  const all: readonly Action[] = isAction(actions) ? [actions] : Object.values(actions)
  return all.flatMap((action) => ('endpoint' in action ? [action.endpoint] : action.endpoints))
}

const Project = z.string().optional().describe('Name or id of the project.')

/** The input schema for clients. */
export function inputSchema({ input, actions, isOfProject }: Tool): z.ZodObject {
  const names = isAction(actions) ? [] : Object.keys(actions)
  return z.object({
    ...(names.length > 0 && { action: z.enum(names as [string, ...string[]]) }),
    ...input,
    ...(isOfProject && { project: Project, project_id: Project.describe('Deprecated: use project.') }),
  })
}

export const pageInput = {
  limit: z.int().min(1).max(100).optional(),
  offset: z.int().min(0).optional(),
}

/** The given arguments among these names. */
export function pick(args: Arguments, ...names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.filter((name) => args[name] !== undefined).map((name) => [name, args[name]]))
}

/** The object, or undefined if it is empty. */
export function unlessEmpty(fields: Record<string, unknown>): Record<string, unknown> | undefined {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return given.length > 0 ? Object.fromEntries(given) : undefined
}

export function byId(name: string, param = 'id_or_name'): (args: Arguments) => { params: Record<string, string> } {
  return (args) => ({ params: { [param]: args[name] } })
}
