import { agentOperationsPath } from '@berth/contract/agent/agent-protocol.ts'
import {
  invokeWebMcpTool,
  type LiveWebMcpTool,
  listWebMcpTools,
  type WebMcpInvocation,
} from '@berth/contract/agent/operations/webmcp-operations.ts'
import type { SessionId, VaultItemId, VaultOperationId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { WebMcpRequest, WebMcpResult } from '@berth/contract/vaults/item-operation.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { AgentRefusal } from '../../../agent-link/command-agent.ts'
import type { EventName } from '../items/event-store.ts'
import type { ItemChanges } from '../items/item-changes.ts'
import type { NamedItem, OpenItem } from '../items/item-service.ts'
import { bindValues, withoutTexts } from './bind-values.ts'
import { denialOf } from './destination.ts'
import type { ItemUse } from './item-use.ts'
import type { LinkedSessions } from './linked-sessions.ts'
import { eventOf, type OperationStore } from './operation-store.ts'

const listMilliseconds = 15_000
const commandMilliseconds = 15_000
const maxListBytes = 32 * 1024 * 1024

interface WebMcpOperationOptions {
  readonly use: ItemUse
  readonly operations: OperationStore
  readonly sessions: LinkedSessions
  readonly changes: ItemChanges
  readonly clock: Clock
}

type BoundInput = ReturnType<typeof bindValues>

interface Invocation {
  readonly id: VaultOperationId
  readonly itemId: VaultItemId
  readonly sessionId: SessionId
}

const listTools = { ...listWebMcpTools, path: `${agentOperationsPath}${listWebMcpTools.agentPath}` } as const
const invokeTool = { ...invokeWebMcpTool, path: `${agentOperationsPath}${invokeWebMcpTool.agentPath}` } as const

/**
 * Calls a tool of a page with values of an item. A reference to a tool belongs to one document, so the page that is
 * checked is the page that is called.
 */
export class WebMcpOperation {
  readonly #options: WebMcpOperationOptions

  constructor(options: WebMcpOperationOptions) {
    this.#options = options
  }

  async perform(named: NamedItem, request: WebMcpRequest, signal: AbortSignal): Promise<WebMcpResult> {
    const { use, operations, sessions, changes, clock } = this.#options
    const opened = await use.openFor(named, 'webmcp_invoke', request.bindings, 'bindings')
    const session = await use.linkedSession(opened, request.browser_id)
    const invocation = await this.#begin(opened, session.id, request)
    try {
      const options = { limitMilliseconds: listMilliseconds, maxAnswerBytes: maxListBytes, signal }
      // The request has no body.
      const { tools } = await sessions.command(session.id, listTools, null as never, options)
      const tool = tools.find(({ tool_ref }) => tool_ref === request.tool_ref)
      await this.#requireDestination(invocation, opened, tool, request.page_url)
      const current = await use.openFor(named, 'webmcp_invoke', request.bindings, 'bindings')
      const texts = use.textsOf(current, request.bindings)
      const pointers = request.bindings.map(({ input_path }) => input_path)
      const input = bindValues(request.input, pointers, texts)
      if (!(await operations.beginWriting(invocation.id))) throw new BerthError('vault_item_not_found', named)
      return await this.#invoke(invocation, { ...request, input }, texts)
    } catch (error) {
      await operations.giveUp(invocation.itemId, invocation.id, clock.now())
      throw error
    } finally {
      changes.notify()
    }
  }

  async #requireDestination(
    invocation: Invocation,
    { item }: OpenItem,
    tool: LiveWebMcpTool | undefined,
    pageUrl: string,
  ): Promise<void> {
    if (!tool) throw new BerthError('tool_not_found')
    const { source } = tool
    if (source.page_url !== pageUrl.split('#', 1)[0]) throw new BerthError('fill_page_not_found')
    const origins = [originOf(source.frame?.url ?? source.page_url)]
    const reason = source.custom
      ? 'a custom tool is code of a caller, and not of the page'
      : denialOf({ allowedDomains: item.allowed_domains, pageUrl: source.page_url, origins })
    if (reason === undefined) return
    await this.#end(invocation, 'failed', 'webmcp.denied')
    throw new BerthError('destination_denied', { reason })
  }

  /** Continues when the caller disconnects, because the page would not stop either. */
  async #invoke(
    invocation: Invocation,
    { tool_ref, input, timeout_sec }: Pick<WebMcpRequest, 'tool_ref' | 'timeout_sec'> & { readonly input: BoundInput },
    texts: readonly string[],
  ): Promise<WebMcpResult> {
    const { sessions } = this.#options
    const options = { limitMilliseconds: timeout_sec * 1000 + commandMilliseconds }
    let answer: WebMcpInvocation
    try {
      answer = await sessions.command(invocation.sessionId, invokeTool, { tool_ref, input, timeout_sec }, options)
    } catch (error) {
      // These two errors occur before the page has the values.
      const code = error instanceof AgentRefusal ? error.code : undefined
      if (code === 'tool_not_found' || code === 'page_not_answering') {
        await this.#end(invocation, 'failed')
        throw new BerthError(code)
      }
      await this.#end(invocation, 'unknown')
      return { type: 'webmcp_invoke', status: 'unknown' }
    }
    await this.#end(invocation, answer.status === 'error' ? 'failed' : 'completed')
    const { output, error_text, invocation_id, status } = answer
    return {
      type: 'webmcp_invoke',
      status,
      invocation_id,
      ...(output !== undefined && { output: withoutTexts(output, texts) }),
      ...(error_text !== undefined && { error_text: String(withoutTexts(error_text, texts)) }),
    }
  }

  async #begin({ item }: OpenItem, sessionId: SessionId, request: WebMcpRequest): Promise<Invocation> {
    const { operations, clock } = this.#options
    const now = clock.now()
    const data = { fields: request.bindings.map(({ field }) => field) }
    const limit = listMilliseconds + request.timeout_sec * 1000 + 2 * commandMilliseconds
    const id = await operations.begin({
      itemId: item.id,
      sessionId,
      type: 'webmcp_invoke',
      now,
      heldUntil: new Date(now.getTime() + limit),
      event: { name: 'webmcp.started', at: now, browserId: sessionId, data },
    })
    if (!id) throw new BerthError('vault_item_not_found', { key: item.key })
    return { id, itemId: item.id, sessionId }
  }

  async #end(
    { id, itemId, sessionId }: Invocation,
    state: 'completed' | 'failed' | 'unknown',
    name: EventName = eventOf('webmcp_invoke', state),
  ): Promise<void> {
    const event = { name, at: this.#options.clock.now(), browserId: sessionId, data: { operation_id: id } }
    await this.#options.operations.end(itemId, id, { state, event })
  }
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'null'
}
