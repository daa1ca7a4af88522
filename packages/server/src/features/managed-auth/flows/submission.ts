import type { LoginChoice, LoginField, LoginPage } from '@berth/contract/agent/login/login-page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { SubmitRequest } from '@berth/contract/managed-auth/interaction.ts'
import { askedFields, mfaTypeOf } from './interaction.ts'

/** An answer, by the references of its page. */
export type Answer =
  | { readonly kind: 'values'; readonly values: readonly (readonly [ref: string, value: string])[] }
  | { readonly kind: 'choice'; readonly ref: string }

type Mode = Exclude<keyof SubmitRequest, 'interaction_id'>

/** The single kind of answer in the request. Clients send empty objects in addition to a choice, which are ignored. */
export function modeOf(request: SubmitRequest): Mode {
  const given = modes.filter((mode) => {
    const value = request[mode]
    return typeof value === 'object' ? Object.keys(value).length > 0 : value !== undefined
  })
  const [mode, other] = given
  if (mode !== undefined && other === undefined) return mode
  const found = mode === undefined ? 'none is there' : `${given.join(' and ')} are there`
  throw new BerthError('invalid_input', { reason: `body: must have exactly one of ${modes.join(', ')}; ${found}.` })
}

const modes = [
  'field_values',
  'selected_choice_id',
  'fields',
  'mfa_option_id',
  'sign_in_option_id',
  'sso_button_selector',
  'sso_provider',
] as const satisfies readonly Mode[]

/** Reads the answer to a page. Rejects fields and choices that the page does not have, by name. */
export function readAnswer(request: SubmitRequest, page: LoginPage, knownRefs: readonly string[]): Answer {
  const mode = modeOf(request)
  switch (mode) {
    case 'field_values':
      return valuesOf(mode, request.field_values ?? {}, askedFields(page, knownRefs), 'ref')
    case 'fields':
      return valuesOf(mode, request.fields ?? {}, askedFields(page, knownRefs), 'name')
    case 'selected_choice_id':
      return choose(mode, page, ({ ref }) => ref === request.selected_choice_id)
    case 'mfa_option_id':
      return choose(mode, page, (choice) => mfaTypeOf(choice) === request.mfa_option_id)
    case 'sign_in_option_id':
      return choose(mode, page, ({ kind, ref }) => kind !== 'sso' && ref === request.sign_in_option_id)
    case 'sso_button_selector':
      return choose(mode, page, ({ kind, selector }) => kind === 'sso' && selector === request.sso_button_selector)
    case 'sso_provider':
      return choose(
        mode,
        page,
        ({ kind, provider }) => kind === 'sso' && provider === request.sso_provider?.toLowerCase(),
      )
  }
}

function choose(mode: Mode, { choices }: LoginPage, isMeant: (choice: LoginChoice) => boolean): Answer {
  const choice = choices.find(isMeant)
  if (!choice) throw refused(mode, 'the login offers no such choice.')
  return { kind: 'choice', ref: choice.ref }
}

function valuesOf(
  mode: Mode,
  given: Readonly<Record<string, string>>,
  fields: readonly LoginField[],
  key: 'ref' | 'name',
): Answer {
  for (const name of Object.keys(given)) {
    if (!fields.some((field) => field[key] === name)) throw refused(`${mode}.${name}`, 'the login does not ask for it.')
  }
  const values = fields.flatMap((field) => {
    const value = given[field[key]] ?? ''
    if (value === '' && field.required) throw refused(`${mode}.${field[key]}`, 'the login needs a value.')
    if (value !== '' && field.options && !field.options.some((option) => option.value === value)) {
      throw refused(`${mode}.${field[key]}`, 'is none of the values that the site offers.')
    }
    return value === '' ? [] : [[field.ref, value] as const]
  })
  if (values.length === 0) throw refused(mode, 'has no value.')
  return { kind: 'values', values }
}

function refused(field: string, reason: string): BerthError {
  return new BerthError('submission_refused', { field, reason })
}
