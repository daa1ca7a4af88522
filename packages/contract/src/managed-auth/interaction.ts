import { z } from 'zod'

/*
 * What a login asks for, in two equivalent forms: `fields` and `choices`, which clients prefer, and the four older
 * lists.
 */

export const AuthFieldType = z.enum(['identifier', 'password', 'code', 'totp_code', 'totp_secret', 'text'])
export type AuthFieldType = z.infer<typeof AuthFieldType>

export const AuthField = z
  .object({
    id: z.string().meta({ description: 'The key of the value in `field_values`.' }),
    ref: z.string().meta({ description: 'The name under which a credential stores the value.' }),
    type: AuthFieldType,
    reason: z.enum(['missing', 'rejected']).meta({ description: 'Whether the site rejected an earlier value.' }),
    label: z.string().optional(),
    required: z.boolean().optional(),
    hint: z.string().optional(),
    input_mode: z.enum(['text', 'email', 'tel', 'numeric']).optional(),
    observed_selector: z.string().nullable().optional(),
  })
  .meta({ id: 'ManagedAuthField' })
export type AuthField = z.infer<typeof AuthField>

const mfaTypes = ['sms', 'call', 'email', 'totp', 'push', 'password', 'switch'] as const

export const AuthChoiceType = z.enum([
  'mfa_method',
  'sso_provider',
  'sign_in_method',
  'auth_method',
  'identifier_method',
  'account',
  'other',
])
export type AuthChoiceType = z.infer<typeof AuthChoiceType>

export const AuthChoiceMfaType = z.enum([...mfaTypes, 'passkey', 'other'])
export type AuthChoiceMfaType = z.infer<typeof AuthChoiceMfaType>

export const AuthChoice = z
  .object({
    id: z.string().meta({ description: 'The value of `selected_choice_id`.' }),
    label: z.string(),
    type: AuthChoiceType,
    description: z.string().nullable().optional(),
    context: z.string().nullable().optional(),
    display_text: z.string().nullable().optional(),
    masked_destination: z.string().nullable().optional(),
    mfa_type: AuthChoiceMfaType.nullable().optional(),
    observed_selector: z.string().nullable().optional(),
  })
  .meta({ id: 'ManagedAuthChoice' })
export type AuthChoice = z.infer<typeof AuthChoice>

export const DiscoveredField = z
  .object({
    name: z.string().meta({ description: 'The key of the value in `fields`.' }),
    label: z.string(),
    selector: z.string(),
    type: z.enum(['text', 'email', 'password', 'tel', 'number', 'url', 'code', 'totp']),
    required: z.boolean().optional(),
    placeholder: z.string().optional(),
    hint: z.string().optional(),
    linked_mfa_type: z.enum(mfaTypes).nullable().optional(),
  })
  .meta({ id: 'DiscoveredField' })
export type DiscoveredField = z.infer<typeof DiscoveredField>

export const MfaOption = z
  .object({
    type: z.enum(mfaTypes).meta({ description: 'The value of `mfa_option_id`.' }),
    label: z.string(),
    target: z.string().nullable().optional(),
    description: z.string().nullable().optional(),
  })
  .meta({ id: 'MFAOption' })
export type MfaOption = z.infer<typeof MfaOption>

export const SignInOption = z
  .object({
    id: z.string().meta({ description: 'The value of `sign_in_option_id`.' }),
    label: z.string(),
    description: z.string().nullable().optional(),
  })
  .meta({ id: 'SignInOption' })
export type SignInOption = z.infer<typeof SignInOption>

export const PendingSsoButton = z
  .object({
    selector: z.string().meta({ description: 'The value of `sso_button_selector`.' }),
    provider: z.string(),
    label: z.string(),
  })
  .meta({ id: 'SSOButton' })
export type PendingSsoButton = z.infer<typeof PendingSsoButton>

/** Both forms together. */
export interface Interaction {
  readonly fields: AuthField[]
  readonly choices: AuthChoice[]
  readonly discovered_fields: DiscoveredField[]
  readonly mfa_options: MfaOption[]
  readonly sign_in_options: SignInOption[]
  readonly pending_sso_buttons: PendingSsoButton[]
}

const maxValues = 50
const maxValueLength = 16 * 1024
const Values = z
  .record(z.string().min(1).max(255), z.string().max(maxValueLength))
  .refine((values) => Object.keys(values).length <= maxValues, { error: `must have at most ${maxValues} values` })

const Reference = z.string().min(1).max(4096)

/** The answer of a person or a program: values or one choice, in either form. */
export const SubmitRequest = z
  .strictObject({
    interaction_id: z.string().min(1).max(255).optional().meta({
      description: 'The interaction that is answered. An answer to an earlier one is rejected.',
    }),
    field_values: Values.optional().meta({ description: 'Values by the `id` of a field.' }),
    selected_choice_id: Reference.optional(),
    fields: Values.optional().meta({ description: 'Values by the `name` of a discovered field.' }),
    mfa_option_id: Reference.optional().meta({ description: 'The `type` of an MFA option.' }),
    sign_in_option_id: Reference.optional(),
    sso_button_selector: Reference.optional(),
    sso_provider: Reference.optional(),
  })
  .meta({ id: 'ManagedAuthSubmitRequest' })
export type SubmitRequest = z.output<typeof SubmitRequest>
