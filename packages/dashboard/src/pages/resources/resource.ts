import type { ListName } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import type { ReactNode } from 'react'
import type { z } from 'zod'

// biome-ignore lint/suspicious/noExplicitAny: endpoints of all resources are kept in one list.
type AnyEndpoint = Endpoint<any, any, any, any>

/** An item of a resource whose list is not known. */
export type Item = never

type ItemOf<List extends AnyEndpoint> =
  z.output<NonNullable<List['reply']>> extends readonly (infer Item)[] ? Item : never

export interface Column<Item> {
  readonly title: string
  readonly value: (item: Item) => ReactNode
}

/** Something else that can be done with an item, and what of the response is shown. */
export interface Action<Item> {
  readonly label: string
  readonly endpoint: AnyEndpoint
  readonly body?: (item: Item) => unknown
  readonly messageOf: (reply: never) => string
  readonly isOffered?: (item: Item) => boolean
}

/** Another way to make an item than the endpoint that creates it. */
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

/** All that a page of a kind of resource needs to know. The forms come from the endpoints. */
export interface Resource<List extends AnyEndpoint = AnyEndpoint> {
  readonly path: ListName
  readonly title: string
  readonly one: string
  readonly empty: string
  /** The page of /docs/guides about it. */
  readonly guide: string
  readonly list: List
  /** What the list is always asked for. */
  readonly query?: () => Readonly<Record<string, unknown>>
  /** The parameter of the list that finds text. */
  readonly searchBy?: string
  readonly columns: readonly Column<ItemOf<List>>[]
  readonly keyOf: (item: ItemOf<List>) => string
  readonly nameOf: (item: ItemOf<List>) => string
  readonly create?: AnyEndpoint
  /** What is shown of a new item, once. */
  readonly createdText?: (reply: never) => string | undefined
  readonly update?: AnyEndpoint
  readonly initial?: (item: ItemOf<List>) => Readonly<Record<string, unknown>>
  readonly otherCreates?: readonly OtherCreate[]
  readonly settings?: Settings
  /** A page of an item, behind its name. */
  readonly page?: { readonly label: string; readonly to: '/vaults/$vault' | '/webhooks/$webhook' }
  readonly remove?: AnyEndpoint
  readonly actions?: readonly Action<ItemOf<List>>[]
  /** A file of an item. */
  readonly file?: { readonly endpoint: AnyEndpoint; readonly name: (item: ItemOf<List>) => string }
  /** A stream of an item whose events have messages. */
  readonly log?: AnyEndpoint
}

export function defineResource<List extends AnyEndpoint>(resource: Resource<List>): Resource {
  return resource as unknown as Resource
}

/** Endpoints name their one parameter differently. */
export function paramsOf(key: string) {
  return { id: key, id_or_name: key }
}

/** A request with a file: members of objects are written as `env_vars[NAME]`. */
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
