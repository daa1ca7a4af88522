import { getAuthContext } from '@berth/contract/auth/auth-endpoints.ts'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  CompleteRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import { Api, ApiError, type ApiOptions } from './api.ts'
import { complete } from './complete.ts'
import type { DocsSearch } from './docs-search.ts'
import { promptMessages, prompts } from './prompts.ts'
import { reportProgress } from './report-progress.ts'
import { readResource, resourceTemplates } from './resources.ts'
import { type Action, type Arguments, at, Content, type ContentPart, inputSchema, isAction, type Tool } from './tool.ts'
import { allTools } from './tools/all-tools.ts'
import type { Toolset } from './toolsets.ts'

/** Limit for a text in a response: longer texts do not fit into any context, and some clients crash on them. */
const maxTextLength = 200_000

export interface McpServerOptions extends ApiOptions {
  readonly version: string
  readonly docs: DocsSearch
  readonly disabled: ReadonlySet<Toolset>
}

/**
 * Serves berth's tools to a model, with the permissions of an API key. `project` restricts the connection to one
 * project.
 */
export function createMcpServer({ version, docs, disabled, ...options }: McpServerOptions): Server {
  const { project: pin } = options
  const tools = allTools(docs).filter(({ toolset }) => toolset === undefined || !disabled.has(toolset))
  const server = new Server(
    { name: 'berth', version },
    {
      capabilities: { tools: {}, resources: {}, prompts: {}, completions: {} },
      instructions: 'get_connection_context returns your organization and project.',
    },
  )

  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.map(describe) }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: args = {} } }, extra) => {
    const { signal } = extra
    const tool = tools.find((each) => each.name === name)
    if (!tool) return failed(name, undefined, new Error('there is no such tool'))
    const api = new Api({ ...options, signal })
    const action = typeof args.action === 'string' ? args.action : undefined
    using _progress = reportProgress(extra)
    return await runTool(tool, args, api, pin).catch((error: unknown) => failed(name, action, error))
  })

  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [] }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates }))
  server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }, { signal }) => ({
    contents: [await readResource(uri, new Api({ ...options, signal }), pin)],
  }))

  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: [...prompts] }))
  server.setRequestHandler(GetPromptRequestSchema, ({ params: { name, arguments: args = {} } }) => ({
    messages: promptMessages(name, args),
  }))
  server.setRequestHandler(CompleteRequestSchema, async ({ params: { ref, argument } }, { signal }) => ({
    completion: await complete(ref, argument, new Api({ ...options, signal })),
  }))
  return server
}

/** Checks that the API key is valid and may act in the project. Throws an ApiError. */
export async function checkConnection(options: ApiOptions): Promise<void> {
  await new Api(options).call(at(getAuthContext))
}

function describe(tool: Tool) {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(inputSchema(tool), { io: 'input' })
  return { name: tool.name, description: tool.help, inputSchema: { ...schema, type: 'object' as const } }
}

async function runTool(tool: Tool, given: Arguments, api: Api, pin: string | undefined): Promise<CallToolResult> {
  const parsed = inputSchema(tool).safeParse(given)
  if (!parsed.success)
    throw new Error(parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '))
  const args: Arguments = parsed.data
  const own = tool.isOfProject ? inProject(api, args.project ?? args.project_id, pin) : api
  const action = isAction(tool.actions) ? tool.actions : tool.actions[args.action]
  if (!action) throw new Error('action is required')
  for (const name of action.needs ?? []) {
    if (name.split('|').every((each) => args[each] === undefined))
      throw new Error(`${name.replaceAll('|', ' or ')} is required`)
  }
  const result = await runAction(action, args, own)
  const content =
    result instanceof Content ? result.parts : [{ type: 'text' as const, text: JSON.stringify(result ?? { ok: true }) }]
  return { content: content.map(cut) }
}

function cut(part: ContentPart): ContentPart {
  if (part.type !== 'text' || part.text.length <= maxTextLength) return part
  const left = part.text.length - maxTextLength
  return { type: 'text', text: `${part.text.slice(0, maxTextLength).toWellFormed()}\n… (cut: ${left} more characters)` }
}

function inProject(api: Api, project: string | undefined, pin: string | undefined): Api {
  if (pin !== undefined && project !== undefined && project !== pin) {
    throw new Error(`this connection is for the project ${pin}`)
  }
  return project === undefined ? api : api.inProject(project)
}

async function runAction(action: Action, args: Arguments, api: Api): Promise<unknown> {
  if ('run' in action) return action.run(args, api)
  const { endpoint, request = () => ({}), hint, reply } = action
  if (endpoint.paged) return withNote(await api.list(endpoint, request(args)), hint)
  const answer = await api.call<Arguments>(endpoint, request(args))
  if (Array.isArray(answer)) return withNote({ items: answer, has_more: false, next_offset: null }, hint)
  return reply ? reply(answer, args) : answer
}

function withNote<List extends { readonly items: readonly unknown[] }>(list: List, hint: string | undefined) {
  return list.items.length === 0 && hint ? { ...list, note: hint } : list
}

function failed(name: string, action: string | undefined, error: unknown): CallToolResult {
  const message = error instanceof Error ? error.message : String(error)
  const code = error instanceof ApiError && error.code ? ` [code: ${error.code}]` : ''
  const text = `Error in ${name}${action ? ` (${action})` : ''}: ${message}${code}`
  return { isError: true, content: [{ type: 'text', text }] }
}
