import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { totpCode, usualTotp } from '../../../secrets/totp.ts'
import type { ItemService, NamedItem, OpenItem } from '../items/item-service.ts'
import type { LinkedSessions } from './linked-sessions.ts'

interface ItemUseOptions {
  readonly items: ItemService
  readonly sessions: Pick<LinkedSessions, 'find'>
  readonly clock: Clock
}

interface RequestedField {
  readonly field: string
  readonly format?: string | undefined
}

/** The common checks of all operations that use values of an item. */
export class ItemUse {
  readonly #options: ItemUseOptions

  constructor(options: ItemUseOptions) {
    this.#options = options
  }

  /** The item, if it supports the operation and has a value for each field. */
  async openFor(named: NamedItem, type: string, fields: readonly RequestedField[], list: string): Promise<OpenItem> {
    const opened = await this.#options.items.get(named)
    const isOffered = !opened.managed || type === 'fill'
    if (opened.item.status !== 'ready' || !isOffered) throw new BerthError('vault_operation_not_available', { type })
    for (const [index, { field, format }] of fields.entries()) {
      if (!opened.values.has(field)) throw new BerthError('field_unavailable', { field })
      if (format === undefined) continue
      const reason = `${list}.${index}.format: only the expiry of a card has a format.`
      throw new BerthError('invalid_input', { reason })
    }
    return opened
  }

  /** The active session of the project, if it was created with the vault. */
  async linkedSession({ vault }: OpenItem, browserId: string): Promise<{ readonly id: SessionId }> {
    const session = await this.#options.sessions.find(vault.project_id, browserId)
    if (!session) throw new BerthError('session_not_found', { session: browserId })
    if (!session.vaults?.some(({ id }) => id === vault.id)) throw new BerthError('vault_not_linked')
    return session
  }

  /** The texts to write now. For a TOTP secret, that is a code, never the secret. */
  textsOf({ item, values, managed }: OpenItem, fields: readonly RequestedField[]): readonly string[] {
    const now = this.#options.clock.now()
    return fields.map(({ field }) => {
      const value = values.get(field)
      if (value === undefined) throw new BerthError('field_unavailable', { field })
      const type = item.fields.find(({ name }) => name === field)?.type
      if (type === 'totp' && managed?.status === 'ready') return managed.totp?.(now).code ?? ''
      return type === 'totp' ? totpCode(value, usualTotp, now).code : value
    })
  }
}
