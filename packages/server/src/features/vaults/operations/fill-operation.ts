import { setTimeout as delay } from 'node:timers/promises'
import {
  type FindFormFieldsReply,
  fillFormFields,
  findFormFields,
} from '@berth/contract/agent/login/form-fill-endpoints.ts'
import type { Sealed } from '@berth/contract/agent/login/sealing-endpoints.ts'
import type { SessionId, VaultItemId, VaultOperationId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { FilledField, FillRequest, FillResult } from '@berth/contract/vaults/item-operation.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { NewEvent } from '../items/event-store.ts'
import type { ItemChanges } from '../items/item-changes.ts'
import type { NamedItem, OpenItem } from '../items/item-service.ts'
import { denialOf } from './destination.ts'
import type { ItemUse } from './item-use.ts'
import type { LinkedSessions } from './linked-sessions.ts'
import { eventOf, type OperationStore } from './operation-store.ts'
import { sealFor } from './seal-for.ts'

/** Added to the time that the caller permits for the page. */
const commandMilliseconds = 15_000
/** How long a fill waits for another one in the same browser. */
const turnMilliseconds = 15_000
const turnPauseMilliseconds = 250

interface FillOperationOptions {
  readonly use: ItemUse
  readonly operations: OperationStore
  readonly sessions: LinkedSessions
  readonly changes: ItemChanges
  readonly clock: Clock
}

interface Fill {
  readonly id: VaultOperationId
  readonly itemId: VaultItemId
  readonly sessionId: SessionId
}

/**
 * Fills values of an item into a page, in two steps. First the machine finds the elements, without any values. Then the
 * server checks whether the values may be filled in there, and only then sends them. If it gets no response, the
 * outcome is unknown.
 */
export class FillOperation {
  readonly #options: FillOperationOptions

  constructor(options: FillOperationOptions) {
    this.#options = options
  }

  async perform(named: NamedItem, request: FillRequest, signal: AbortSignal): Promise<FillResult> {
    const { use, operations, changes, clock } = this.#options
    const opened = await use.openFor(named, 'fill', request.fields, 'fields')
    const session = await use.linkedSession(opened, request.browser_id)
    const fill = await this.#takeTurn(opened, session.id, request, signal)
    try {
      return await this.#fill(named, opened, { fill, request, signal })
    } catch (error) {
      await operations.giveUp(fill.itemId, fill.id, clock.now())
      throw error
    } finally {
      changes.notify()
    }
  }

  async #fill(
    named: NamedItem,
    { item }: OpenItem,
    { fill, request, signal }: { readonly fill: Fill; readonly request: FillRequest; readonly signal: AbortSignal },
  ): Promise<FillResult> {
    const { use, operations, sessions } = this.#options
    const found = foundOf(await this.#find(fill, request, signal), request)
    if ('fields' in found) return this.#result(fill, found)
    const reason = denialOf({ allowedDomains: item.allowed_domains, pageUrl: found.page_url, origins: found.origins })
    if (reason !== undefined) {
      await this.#end(fill, 'failed', [], { name: 'fill.denied' })
      throw new BerthError('destination_denied', { reason })
    }
    // Read again: finding the elements may take long, and the item may have been changed or deleted meanwhile.
    const texts = use.textsOf(await use.openFor(named, 'fill', request.fields, 'fields'), request.fields)
    const sealed = await sealFor(sessions, fill.sessionId, texts)
    if (!(await operations.beginWriting(fill.id))) throw new BerthError('vault_fill_under_way')
    return this.#result(fill, await this.#write(fill, found.fill_id, sealed, request.timeout_ms))
  }

  async #find({ sessionId }: Fill, request: FillRequest, signal: AbortSignal): Promise<FindFormFieldsReply> {
    const { fields, page_url, timeout_ms } = request
    const body = { selectors: fields.map(({ selector }) => selector), timeout_ms, ...(page_url && { page_url }) }
    const options = { limitMilliseconds: timeout_ms + commandMilliseconds, signal }
    return this.#options.sessions.command(sessionId, findFormFields, body, options).catch((cause: unknown) => {
      if (cause instanceof BerthError) throw cause
      throw new BerthError('session_unreachable', undefined, { cause })
    })
  }

  /** Continues when the caller disconnects, because a form must not be left half filled. */
  async #write({ sessionId }: Fill, fillId: string, sealed: Sealed, timeoutMilliseconds: number) {
    const body = { fill_id: fillId, sealed_values: sealed, timeout_ms: timeoutMilliseconds }
    const options = { limitMilliseconds: timeoutMilliseconds + commandMilliseconds }
    try {
      const reply = await this.#options.sessions.command(sessionId, fillFormFields, body, options)
      if (reply.fields.length === sealed.values.length) return reply
    } catch {
      // The values may have arrived.
    }
    const fields = sealed.values.map((_value, index) => ({ index, status: 'unknown' as const }))
    return { status: 'unknown' as const, fields }
  }

  async #result(fill: Fill, { status, fields }: Omit<FillResult, 'type'>): Promise<FillResult> {
    await this.#end(fill, status, fields)
    return { type: 'fill', status, fields: [...fields] }
  }

  async #end(
    { id, itemId, sessionId }: Fill,
    state: FillResult['status'],
    fields: readonly FilledField[],
    { name = eventOf('fill', state) }: Partial<Pick<NewEvent, 'name'>> = {},
  ): Promise<void> {
    const data = { operation_id: id, filled: fields.filter(({ status }) => status === 'filled').length }
    const event = { name, at: this.#options.clock.now(), browserId: sessionId, data }
    await this.#options.operations.end(itemId, id, { state, fields, event })
  }

  /** Waits until no other fill of the browser is in progress. */
  async #takeTurn({ item }: OpenItem, sessionId: SessionId, request: FillRequest, signal: AbortSignal): Promise<Fill> {
    const { operations, clock } = this.#options
    const end = performance.now() + turnMilliseconds
    for (;;) {
      const now = clock.now()
      const id = await operations.begin({
        itemId: item.id,
        sessionId,
        type: 'fill',
        now,
        heldUntil: new Date(now.getTime() + 2 * (request.timeout_ms + commandMilliseconds)),
        event: {
          name: 'fill.started',
          at: now,
          browserId: sessionId,
          data: { fields: request.fields.map(({ field }) => field) },
        },
      })
      if (id) return { id, itemId: item.id, sessionId }
      if (performance.now() >= end) throw new BerthError('vault_fill_under_way')
      await delay(turnPauseMilliseconds, undefined, { signal })
    }
  }
}

type Found = Extract<FindFormFieldsReply, { outcome: 'found' }>

/** The elements, or the result of a fill whose elements do not exist. */
function foundOf(reply: FindFormFieldsReply, request: FillRequest): Found | Omit<FillResult, 'type'> {
  switch (reply.outcome) {
    case 'no_page':
      throw new BerthError('fill_page_not_found')
    case 'several_pages':
      throw new BerthError('ambiguous_page')
    case 'invalid_selector':
      throw new BerthError('invalid_input', { reason: `fields.${reply.index}.selector: is not a CSS selector.` })
    case 'not_found': {
      const fields = request.fields.map((_field, index): FilledField => {
        if (index !== reply.index) return { index, status: 'not_attempted' }
        return { index, status: 'failed', error_code: reply.error_code }
      })
      return { status: 'failed', fields }
    }
    case 'found':
      return reply
  }
}
