import type { ProjectId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { brokenValueRule, type ItemField } from '@berth/contract/vaults/item-field.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { ItemChanges } from '../items/item-changes.ts'
import type { ItemSecrets } from '../items/item-secrets.ts'
import type { ItemStore, StoredItem } from '../items/item-store.ts'
import { checkTotal, statusOf } from '../items/item-values.ts'
import { hashCollectionToken } from './collection-links.ts'

const tokenForm = /^[\w-]{43}$/

interface CollectionServiceOptions {
  readonly store: ItemStore
  readonly secrets: ItemSecrets
  readonly changes: ItemChanges
  readonly clock: Clock
}

export interface FormField extends ItemField {
  readonly hasValue: boolean
}

/** What a person sees. Contains no values. */
export interface CollectionForm {
  readonly description: string | null
  readonly fields: readonly FormField[]
}

/** The faults of a submission, by field name. The empty name is for the whole submission. */
export type FormFaults = ReadonlyMap<string, string>

export type Submission =
  | { readonly outcome: 'stored' }
  | { readonly outcome: 'gone' }
  | { readonly outcome: 'refused'; readonly form: CollectionForm; readonly faults: FormFaults }

/** Lets the holder of a link enter the values of one item, once. */
export class CollectionService {
  readonly #options: CollectionServiceOptions

  constructor(options: CollectionServiceOptions) {
    this.#options = options
  }

  /** Undefined if the link is invalid or expired. */
  async open(token: string): Promise<CollectionForm | undefined> {
    const found = await this.#find(token)
    return found && formOf(found, await this.#options.secrets.open(found.project_id, found))
  }

  /**
   * Stores the entered values. An empty field keeps its current value. Of two submissions of one link, one succeeds.
   */
  async submit(token: string, entered: ReadonlyMap<string, string>): Promise<Submission> {
    const { store, secrets, changes, clock } = this.#options
    const item = await this.#find(token)
    if (!item) return { outcome: 'gone' }
    const before = await secrets.open(item.project_id, item)
    const form = formOf(item, before)
    const faults = new Map<string, string>()
    const values = new Map(before)
    for (const field of form.fields) {
      const value = entered.get(field.name) ?? ''
      const fault = faultOf(field, value)
      if (fault !== undefined) faults.set(field.name, fault)
      else if (value !== '') values.set(field.name, value)
    }
    if (isTooLarge(values)) faults.set('', 'What you entered is too long.')
    if (faults.size > 0) return { outcome: 'refused', form, faults }

    const now = clock.now()
    const status = statusOf(item.fields, values)
    const columns = { status, sealed_values: await secrets.seal(item.project_id, item.id, values), updated_at: now }
    const written = await store.change(item, columns, {
      collection: undefined,
      event: { name: 'collection.submitted', at: now, data: { version: item.version + 1, status } },
    })
    changes.notify()
    return { outcome: written ? 'stored' : 'gone' }
  }

  async #find(token: string): Promise<(StoredItem & { readonly project_id: ProjectId }) | undefined> {
    if (!tokenForm.test(token)) return undefined
    return this.#options.store.findByToken(hashCollectionToken(token), this.#options.clock.now())
  }
}

/** TOTP secrets are not collected. */
function formOf({ description, fields }: StoredItem, values: ReadonlyMap<string, string>): CollectionForm {
  const shown = fields.filter(({ type }) => type !== 'totp')
  return { description, fields: shown.map((field) => ({ ...field, hasValue: values.has(field.name) })) }
}

function faultOf({ type, required, hasValue }: FormField, value: string): string | undefined {
  if (value === '') return required && !hasValue ? 'Enter a value.' : undefined
  if (value.includes('\0')) return 'This must not contain a NUL character.'
  const rule = brokenValueRule(type, value)
  return rule === undefined ? undefined : `This ${rule}.`
}

function isTooLarge(values: ReadonlyMap<string, string>): boolean {
  try {
    checkTotal(values)
    return false
  } catch (error) {
    if (error instanceof BerthError) return true
    throw error
  }
}
