import { z } from 'zod'
import { Timestamp } from '../common/time.ts'
import { CredentialDomain } from '../credentials/credential.ts'
import { EncryptedValue, ItemField, ItemFieldDefinition, ItemFieldsInput, maxItemFields } from './item-field.ts'

const maxDescriptionBytes = 16 * 1024
const maxAllowedDomains = 20

const Description = z
  .string()
  .refine((text) => new TextEncoder().encode(text).length <= maxDescriptionBytes, {
    error: `must have at most ${maxDescriptionBytes} bytes`,
  })
  .meta({ description: 'The title of the form that collects the values.' })

/** An extension of berth: other clients omit it. */
const AllowedDomains = z
  .array(CredentialDomain)
  .min(1)
  .max(maxAllowedDomains)
  .meta({
    description:
      'Hosts, with their subdomains, where values may be filled in. Applies to the page and to the frame of each ' +
      'element. When absent: any page, and frames of the same site.',
  })

const KernelSpecInput = z.strictObject({
  provider: z.literal('kernel').optional(),
  description: Description.optional(),
  fields: ItemFieldsInput,
  allowed_domains: AllowedDomains.optional(),
})
export type KernelSpecInput = z.output<typeof KernelSpecInput>

const ManagedAuthSpecInput = z.strictObject({
  provider: z.literal('managed_auth'),
  connection_id: z
    .string()
    .min(1)
    .max(255)
    .meta({ description: 'The connection whose saved credential the item fills in.' }),
  description: Description.optional(),
})
export type ManagedAuthSpecInput = z.output<typeof ManagedAuthSpecInput>

/** Rejected by its provider, whatever else it contains. */
const OnePasswordSpecInput = z.looseObject({ provider: z.literal('1password') })
const AnySpec = z.record(z.string(), z.unknown())

export const VaultItemRequest = z
  .discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('credential'),
      spec: z.discriminatedUnion('provider', [KernelSpecInput, ManagedAuthSpecInput, OnePasswordSpecInput]),
    }),
    z.strictObject({ type: z.enum(['wallet', 'card', 'credential_account']), spec: AnySpec }),
  ])
  .meta({ id: 'VaultItemRequest' })
export type VaultItemRequest = z.output<typeof VaultItemRequest>

const FieldUpdate = z
  .strictObject({ value: z.string().nullish(), encrypted_value: EncryptedValue.optional() })
  .refine(({ value, encrypted_value }) => (value === undefined) !== (encrypted_value === undefined), {
    error: 'must have exactly one of value and encrypted_value',
  })

const CredentialUpdateSpec = z.strictObject({
  description: Description.optional().meta({ description: 'An empty text removes it.' }),
  fields: z
    .record(z.string(), FieldUpdate)
    .optional()
    .meta({ description: 'Absent fields keep their values. Null or an empty text removes a value.' }),
  add_fields: z
    .array(ItemFieldDefinition)
    .max(maxItemFields)
    .optional()
    .meta({ description: 'Added after the existing fields. `fields` may contain their values.' }),
  remove_fields: z
    .array(z.string().max(64))
    .max(maxItemFields)
    .optional()
    .meta({ description: 'Names of fields to remove, with their values, before others are added.' }),
})
export type CredentialUpdateSpec = z.output<typeof CredentialUpdateSpec>

export const VaultItemUpdateRequest = z
  .discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('credential'),
      version: z.int().min(1).meta({ description: 'The version that the change is based on.' }),
      spec: CredentialUpdateSpec,
      expected_item_id: z.string().max(255).optional(),
    }),
    z.strictObject({ type: z.literal('card').optional(), spec: AnySpec }),
  ])
  .meta({ id: 'VaultItemUpdateRequest' })
export type VaultItemUpdateRequest = z.output<typeof VaultItemUpdateRequest>

export const VaultItemStatus = z.enum(['pending_collection', 'ready'])
export type VaultItemStatus = z.infer<typeof VaultItemStatus>

const KernelItemSpec = z.object({
  provider: z.literal('kernel'),
  description: z.string().optional(),
  fields: z.array(ItemField),
  allowed_domains: z.array(z.string()).optional(),
})

const KernelItemState = z.object({
  provider: z.literal('kernel'),
  status: VaultItemStatus,
  fields: z.record(
    z.string(),
    z.object({
      has_value: z.boolean(),
      value: z.string().optional().meta({ description: 'Absent for a sensitive field.' }),
    }),
  ),
})

const ManagedAuthItemSpec = z.object({
  provider: z.literal('managed_auth'),
  connection_id: z.string(),
  description: z.string().optional(),
})

const ManagedAuthItemState = z.object({
  provider: z.literal('managed_auth'),
  status: z.enum(['ready', 'unavailable']),
  status_reason: z.enum(['connection_not_found', 'no_credential', 'external_credential']).optional(),
  fields: z
    .record(z.string(), z.object({ type: z.enum(['text', 'email', 'password', 'totp']) }))
    .optional()
    .meta({ description: 'Not in lists.' }),
})

export const VaultItem = z
  .object({
    id: z.string(),
    key: z.string(),
    type: z.literal('credential'),
    version: z.int(),
    created_at: Timestamp,
    updated_at: Timestamp,
    spec: z.discriminatedUnion('provider', [KernelItemSpec, ManagedAuthItemSpec]),
    state: z.discriminatedUnion('provider', [KernelItemState, ManagedAuthItemState]),
    action: z
      .object({ name: z.literal('collect'), url: z.string(), expires_at: Timestamp })
      .optional()
      .meta({ description: 'The page where a person enters the values.' }),
    available_operations: z.array(
      z.object({ type: z.enum(['collect', 'fill', 'webmcp_invoke']), description: z.string() }),
    ),
    available_expansions: z.array(
      z.object({
        type: z.enum(['payment_methods', 'link_user_info', 'link_shipping_addresses']),
        description: z.string(),
      }),
    ),
  })
  .meta({ id: 'VaultItem' })
export type VaultItem = z.infer<typeof VaultItem>

export const VaultItemEvent = z
  .object({
    id: z.string(),
    created_at: Timestamp,
    name: z.string(),
    browser_id: z.string().optional(),
    data: z.record(z.string(), z.json()).optional(),
  })
  .meta({ id: 'VaultItemEvent' })
export type VaultItemEvent = z.infer<typeof VaultItemEvent>
