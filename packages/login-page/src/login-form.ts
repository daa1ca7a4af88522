import { button, make } from './elements.ts'
import type { SubmitBody } from './login-client.ts'
import type { LoginChoice, LoginField, LoginState } from './login-state.ts'

type Submit = (body: SubmitBody) => void

/** Entered values that are not secret, by label: a site that rejects a password asks for everything again. */
const entered = new Map<string, string>()

/** The fields and choices of a login. */
export function loginForm(state: LoginState, submit: Submit): HTMLElement {
  const fields = state.fields ?? []
  const choices = state.choices ?? []
  return make(
    'div',
    {},
    fields.length > 0 && fieldForm(state, fields, submit),
    fields.length > 0 && choices.length > 0 && make('p', { class: 'or' }, 'or'),
    choices.length > 0 && choiceList(state, choices, submit),
  )
}

function fieldForm(state: LoginState, fields: readonly LoginField[], submit: Submit): HTMLElement {
  const form = make('form', { novalidate: true })
  const inputs = fields.map((field, index) => ({ field, ...inputOf(field, index) }))
  for (const { row } of inputs) form.append(row)
  form.append(make('button', { type: 'submit', class: 'primary' }, 'Continue'))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const missing = inputs.filter(({ field, input }) => field.required !== false && input.value === '')
    for (const { input, fault } of inputs) {
      const isMissing = missing.some((known) => known.input === input)
      // An attribute without a value would mark the field as valid.
      if (isMissing) input.setAttribute('aria-invalid', 'true')
      else input.removeAttribute('aria-invalid')
      fault.textContent = isMissing ? 'This field is required.' : ''
    }
    missing[0]?.input.focus()
    if (missing.length > 0) return
    for (const { field, input } of inputs) {
      if (field.type === 'identifier' && field.label) entered.set(field.label, input.value)
    }
    const given = inputs.filter(({ input }) => input.value !== '')
    submit({
      ...question(state),
      field_values: Object.fromEntries(given.map(({ field, input }) => [field.id, input.value])),
    })
  })
  return form
}

const autocompleteOf: Readonly<Record<string, string>> = {
  identifier: 'username',
  password: 'current-password',
  code: 'one-time-code',
  totp_code: 'one-time-code',
}

function inputOf(field: LoginField, index: number) {
  const id = `field-${index}`
  const isSecret = field.type === 'password' || field.type === 'totp_secret'
  const isRejected = field.reason === 'rejected'
  const isCode = field.type === 'code' || field.type === 'totp_code'
  const hint = [field.required === false ? 'Optional.' : '', field.hint ?? ''].filter(Boolean).join(' ')
  const input = make('input', {
    id,
    name: id,
    type: isSecret ? 'password' : field.input_mode === 'email' ? 'email' : field.input_mode === 'tel' ? 'tel' : 'text',
    inputmode: isCode ? 'numeric' : undefined,
    autocomplete: autocompleteOf[field.type] ?? 'off',
    autocapitalize: 'none',
    autocorrect: 'off',
    spellcheck: 'false',
    required: field.required !== false,
    'aria-invalid': isRejected ? 'true' : undefined,
    'aria-describedby': hint === '' ? `${id}-fault` : `${id}-hint ${id}-fault`,
    autofocus: index === 0,
  })
  if (field.type === 'identifier') input.value = entered.get(field.label ?? '') ?? ''
  const fault = make('p', { id: `${id}-fault`, class: 'fault' }, isRejected ? 'The site has rejected this.' : '')
  const row = make(
    'div',
    { class: 'field' },
    make('label', { for: id, dir: 'auto' }, field.label || labelOf(field)),
    isSecret ? make('div', { class: 'secret' }, input, reveal(input)) : input,
    hint !== '' && make('p', { id: `${id}-hint`, class: 'hint', dir: 'auto' }, hint),
    fault,
  )
  return { input, row, fault }
}

function labelOf({ type }: LoginField): string {
  const labels: Readonly<Record<string, string>> = {
    identifier: 'User name',
    password: 'Password',
    code: 'Code',
    totp_code: 'Code of your authenticator',
  }
  return labels[type] ?? 'Value'
}

function reveal(input: HTMLInputElement): HTMLElement {
  const toggle = button(
    'Show',
    () => {
      const isShown = input.type === 'text'
      input.type = isShown ? 'password' : 'text'
      toggle.textContent = isShown ? 'Show' : 'Hide'
      toggle.setAttribute('aria-pressed', String(!isShown))
    },
    { class: 'reveal', 'aria-pressed': 'false', 'aria-label': 'Show input' },
  )
  return toggle
}

const headings: Readonly<Record<string, string>> = {
  mfa_method: 'How do you want to confirm your identity?',
  account: 'Which account do you want to use?',
}

/** A link to other methods comes last. */
function choiceList(state: LoginState, choices: readonly LoginChoice[], submit: Submit): HTMLElement {
  const sorted = choices.toSorted((one, other) => rank(one) - rank(other))
  const [first] = sorted
  const heading = (state.fields?.length ?? 0) === 0 && first ? headings[first.type] : undefined
  return make(
    'div',
    { role: 'group', 'aria-label': heading ?? 'Other ways' },
    heading !== undefined && make('h2', {}, heading),
    ...sorted.map((choice) => {
      const about = choice.masked_destination ?? choice.description
      const made = button('', () => submit({ ...question(state), selected_choice_id: choice.id }), {
        class: 'choice',
        dir: 'auto',
      })
      made.append(make('span', {}, choice.label), about ? make('span', { class: 'hint' }, about) : '')
      return made
    }),
  )
}

function rank({ mfa_type }: LoginChoice): number {
  return mfa_type === 'switch' ? 1 : 0
}

function question({ interaction_id }: LoginState): SubmitBody {
  return interaction_id ? { interaction_id } : {}
}
