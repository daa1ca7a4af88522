import type { ListName } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import type { ReactNode } from 'react'
import type { z } from 'zod'

// biome-ignore lint/suspicious/noExplicitAny: endpoints of all resources are kept in one list.
type AnyEndpoint = Endpoint<any, any, any, any>

/** An item of a resource whose type is unknown. */
export type Item = never

type ItemOf<List extends AnyEndpoint> =
  z.output<NonNullable<List['reply']>> extends readonly (infer Item)[] ? Item : never

export interface Column<Item> {
  readonly title: string
  readonly value: (item: Item) => ReactNode
}

/** Another action for an item, and the part of the response to show. */
export interface Action<Item> {
  readonly label: string
  readonly endpoint: AnyEndpoint
  readonly body?: (item: Item) => unknown
  readonly messageOf: (reply: never) => string
  readonly isOffered?: (item: Item) => boolean
}

/** Another way to create an item than its create endpoint. */
export interface OtherCreate {
  readonly label: string
  readonly schema: z.ZodType
  readonly make: (value: never) => Promise<unknown>
}

/** Settings of an item that have endpoints of their own. */
export interface Settings {
  readonly label: string
  readonly get: AnyEndpoint
  readonly update: AnyEndpoint
}

/** The description of a resource for its page. The forms come from the endpoints. */
export interface Resource<List extends AnyEndpoint = AnyEndpoint> {
  readonly path: ListName
  readonly title: string
  readonly one: string
  readonly empty: string
  /** The page of /docs/guides about it. */
  readonly guide: string
  readonly list: List
  /** Query parameters of every request for the list. */
  readonly query?: () => Readonly<Record<string, unknown>>
  /** The query parameter for a text search. */
  readonly searchBy?: string
  readonly columns: readonly Column<ItemOf<List>>[]
  readonly keyOf: (item: ItemOf<List>) => string
  readonly nameOf: (item: ItemOf<List>) => string
  readonly create?: AnyEndpoint
  /** Text to show once for a new item. */
  readonly createdText?: (reply: never) => string | undefined
  readonly update?: AnyEndpoint
  readonly initial?: (item: ItemOf<List>) => Readonly<Record<string, unknown>>
  readonly otherCreates?: readonly OtherCreate[]
  readonly settings?: Settings
  /** The page of an item, linked from its name. */
  readonly page?: { readonly label: string; readonly to: '/vaults/$vault' | '/webhooks/$webhook' }
  readonly remove?: AnyEndpoint
  readonly actions?: readonly Action<ItemOf<List>>[]
  /** A file to download for an item. */
  readonly file?: { readonly endpoint: AnyEndpoint; readonly name: (item: ItemOf<List>) => string }
  /** A stream of an item whose events have messages. */
  readonly log?: AnyEndpoint
}

export function defineResource<List extends AnyEndpoint>(resource: Resource<List>): Resource {
  return resource as unknown as Resource
}

/** Converts an item's key to parameters: endpoints name their only parameter differently. */
export function paramsOf(key: string) {
  return { id: key, id_or_name: key }
}

/** A request with a file: members of objects are named like `env_vars[NAME]`. */
export function formDataOf(value: unknown): FormData {
  const form = new FormData()
  for (const [name, part] of Object.entries(value as object)) {
    if (part instanceof Blob) form.append(name, part)
    else if (typeof part === 'object' && part !== null) {
      for (const [member, text] of Object.entries(part)) form.append(`${name}[${member}]`, String(text))
    } else form.append(name, String(part))
  }
  return form
}
