import { z } from 'zod'

export const maxItemFields = 32
const maxValueBytes = 16 * 1024
const maxLabelBytes = 128
/** The length of the encrypted form of the longest value. */
const maxEncryptedLength = 32 * 1024

export const ItemFieldType = z.enum(['text', 'email', 'password', 'totp'])
export type ItemFieldType = z.infer<typeof ItemFieldType>

/** Values of these types are never returned. */
const secretTypes: readonly ItemFieldType[] = ['password', 'totp']

export const ItemFieldName = z.string().regex(/^[A-Za-z][A-Za-z0-9_]{0,63}$/, {
  error: 'must start with a letter, followed by at most 63 letters, digits and _',
})

const Label = z
  .string()
  .refine((label) => bytesOf(label) <= maxLabelBytes, { error: `must have at most ${maxLabelBytes} bytes` })
  .refine((label) => label !== '' && label === label.trim() && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(label), {
    error: 'must be a single line without surrounding spaces and control characters',
  })

export const EncryptedValue = z.string().min(1).max(maxEncryptedLength)

export const ItemField = z
  .object({
    name: z.string(),
    type: ItemFieldType,
    required: z.boolean(),
    sensitive: z.boolean(),
    label: z.string().optional(),
  })
  .meta({ id: 'VaultItemField' })
export type ItemField = z.infer<typeof ItemField>

const definition = {
  name: ItemFieldName,
  type: ItemFieldType,
  required: z.boolean().default(true),
  sensitive: z.boolean().default(true),
  label: Label.optional(),
}

/** A field that an update adds, without a value. */
export const ItemFieldDefinition = z.strictObject(definition).superRefine(({ type, sensitive }, context) => {
  if (!secretTypes.includes(type) || sensitive) return
  context.addIssue({ code: 'custom', path: ['sensitive'], message: `must be true for a field of type ${type}` })
})

/** A field with its first value. */
const ItemFieldInput = z
  .strictObject({
    ...definition,
    value: z.string().min(1).optional(),
    encrypted_value: EncryptedValue.optional(),
  })
  .superRefine(({ type, sensitive, value, encrypted_value }, context) => {
    const refuse = (field: string, message: string) => context.addIssue({ code: 'custom', path: [field], message })
    if (secretTypes.includes(type) && !sensitive) refuse('sensitive', `must be true for a field of type ${type}`)
    if (value !== undefined && encrypted_value !== undefined) {
      refuse('encrypted_value', 'cannot be given together with value')
    }
    const rule = value === undefined ? undefined : brokenValueRule(type, value)
    if (rule !== undefined) refuse('value', rule)
  })
export type ItemFieldInput = z.output<typeof ItemFieldInput>

/** A list, or the older form: an object from names to definitions. */
export const ItemFieldsInput = z
  .preprocess(
    fieldList,
    z
      .array(ItemFieldInput)
      .min(1)
      .max(maxItemFields)
      .superRefine((fields, context) => {
        const names = fields.map(({ name }) => name)
        const twice = names.findIndex((name, index) => names.indexOf(name) !== index)
        if (twice === -1) return
        context.addIssue({ code: 'custom', path: [twice, 'name'], message: 'must be a name that no other field has' })
      }),
  )
  .meta({
    description: 'Fields in their order. An object from names to fields is accepted too.',
    override: {
      type: 'array',
      minItems: 1,
      maxItems: maxItemFields,
      items: {
        type: 'object',
        required: ['name', 'type'],
        properties: {
          name: { type: 'string' },
          type: { type: 'string', enum: [...ItemFieldType.options] },
          required: { type: 'boolean', default: true },
          sensitive: { type: 'boolean', default: true },
          label: { type: 'string' },
          value: { type: 'string' },
          encrypted_value: { type: 'string', description: 'A compact JWE for the key of the vault.' },
        },
      },
    },
  })

function fieldList(fields: unknown): unknown {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return fields
  return Object.entries(fields).map(([name, field]) =>
    typeof field === 'object' && field !== null && !Array.isArray(field) ? { ...field, name } : field,
  )
}

/** Returns the rule that a value violates, if any. The message never contains the value. */
export function brokenValueRule(type: ItemFieldType, value: string): string | undefined {
  if (bytesOf(value) > maxValueBytes) return `must have at most ${maxValueBytes} bytes`
  if (type === 'email' && !/^[^\s@<>"(),:;\\[\]]+@[^\s@<>"(),:;\\[\]]+$/.test(value)) {
    return 'must be a bare email address'
  }
  if (type === 'totp' && !isTotpSecret(value)) {
    return 'must be a secret in base32, not a current code and not an otpauth URI'
  }
  return undefined
}

function isTotpSecret(value: string): boolean {
  return /^[A-Za-z2-7]{2,}=*$/.test(value) && !/^\d{6,8}$/.test(value)
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length
}
