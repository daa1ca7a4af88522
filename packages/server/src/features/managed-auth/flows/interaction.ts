import type { LoginChoice, LoginField, LoginPage } from '@berth/contract/agent/login/login-page.ts'
import type {
  AuthChoice,
  AuthChoiceType,
  AuthField,
  AuthFieldType,
  DiscoveredField,
  Interaction,
  MfaOption,
} from '@berth/contract/managed-auth/interaction.ts'
import { isCode } from '../stored-login/stored-login.ts'

/** The fields and choices of a page, except fields with known values, in both forms of the API. */
export function interactionOf(page: LoginPage, knownRefs: readonly string[]): Interaction {
  const fields = askedFields(page, knownRefs)
  const sso = page.choices.filter(({ kind }) => kind === 'sso')
  const others = page.choices.filter((choice) => choice.kind !== 'sso' && !mfaTypeOf(choice))
  return {
    fields: fields.map((field) => fieldRecord(page, field)),
    choices: page.choices.map(choiceRecord),
    discovered_fields: fields.map(discoveredField),
    mfa_options: page.choices.flatMap(mfaOption),
    sign_in_options: others.map(({ ref, label, description }) => ({
      id: ref,
      label,
      description: description ?? null,
    })),
    pending_sso_buttons: sso.map(({ selector, provider = 'sso', label }) => ({ selector, provider, label })),
  }
}

export function askedFields({ fields }: LoginPage, knownRefs: readonly string[]): readonly LoginField[] {
  return fields.filter(({ ref }) => !knownRefs.includes(ref))
}

const typeOf: Readonly<Record<LoginField['purpose'], AuthFieldType>> = {
  username: 'identifier',
  email: 'identifier',
  phone: 'identifier',
  password: 'password',
  totp: 'totp_code',
  sms_code: 'code',
  email_code: 'code',
  code: 'code',
  backup_code: 'code',
  other: 'text',
}

function fieldRecord(page: LoginPage, field: LoginField): AuthField {
  const hint = hintOf(field)
  return {
    id: field.ref,
    ref: field.name,
    type: typeOf[field.purpose],
    reason: isRefused(page, field) ? 'rejected' : 'missing',
    label: field.label,
    required: field.required,
    ...(hint && { hint }),
    input_mode: field.input_mode,
    observed_selector: field.selector,
  }
}

function isRefused({ problem }: LoginPage, field: LoginField): boolean {
  if (field.is_rejected) return true
  if (problem === 'credentials_invalid') return !isCode(field)
  return problem === 'code_rejected' && isCode(field)
}

function hintOf({ hint, options }: LoginField): string | undefined {
  if (!options) return hint
  const list = `One of: ${options.map(({ value, label }) => (label === value ? value : `${value} (${label})`)).join(', ')}`
  return hint ? `${hint} ${list}` : list
}

const discoveredTypeOf: Readonly<Record<LoginField['purpose'], DiscoveredField['type']>> = {
  username: 'text',
  email: 'email',
  phone: 'tel',
  password: 'password',
  totp: 'totp',
  sms_code: 'code',
  email_code: 'code',
  code: 'code',
  backup_code: 'code',
  other: 'text',
}

const linkedMfaOf: Partial<Record<LoginField['purpose'], NonNullable<DiscoveredField['linked_mfa_type']>>> = {
  totp: 'totp',
  sms_code: 'sms',
  email_code: 'email',
}

function discoveredField(field: LoginField): DiscoveredField {
  const hint = hintOf(field)
  return {
    name: field.name,
    label: field.label,
    selector: field.selector,
    type: discoveredTypeOf[field.purpose],
    required: field.required,
    ...(field.placeholder && { placeholder: field.placeholder }),
    ...(hint && { hint }),
    linked_mfa_type: linkedMfaOf[field.purpose] ?? null,
  }
}

const choiceTypeOf: Readonly<Record<LoginChoice['kind'], AuthChoiceType>> = {
  sso: 'sso_provider',
  mfa: 'mfa_method',
  method: 'sign_in_method',
  account: 'account',
  terms: 'other',
  other: 'other',
}

function choiceRecord(choice: LoginChoice): AuthChoice {
  return {
    id: choice.ref,
    label: choice.label,
    type: choiceTypeOf[choice.kind],
    description: choice.description ?? null,
    display_text: choice.label,
    masked_destination: choice.masked_destination ?? null,
    mfa_type: choice.mfa_type ?? null,
    observed_selector: choice.selector,
  }
}

/** The type of a choice, if the older list supports it. */
export function mfaTypeOf({ kind, mfa_type }: LoginChoice): MfaOption['type'] | undefined {
  if (kind !== 'mfa' && kind !== 'method') return undefined
  return mfa_type === 'passkey' || mfa_type === 'other' ? undefined : mfa_type
}

function mfaOption(choice: LoginChoice): MfaOption[] {
  const type = mfaTypeOf(choice)
  if (!type) return []
  const { label, masked_destination: target = null, description = null } = choice
  return [{ type, label, target, description }]
}
