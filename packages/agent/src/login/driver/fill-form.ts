import { setTimeout as delay } from 'node:timers/promises'
import type { LoginPage } from '@berth/contract/agent/login/login-page.ts'
import type { AllowedHosts } from '../allowed-hosts.ts'
import { isTermsToggle, type KnownChoice } from '../analysis/choices.ts'
import { isOneTimeCode, type KnownField } from '../analysis/fields.ts'
import { areFilled, leaveField, typeInto } from '../in-page/act-in-page.ts'
import { callIn, type LoginFrame } from '../login-frames.ts'
import { press, submitByKey } from '../press.ts'
import * as pageWords from '../words/page-words.ts'
import { lookMilliseconds, reactionMilliseconds, type View } from './page-views.ts'

export interface Entry {
  readonly field: KnownField
  readonly value: string
}

interface Typed {
  readonly outcome: 'typed' | 'denied' | 'refused' | 'gone'
  readonly denied?: string
}

/** Types all values, and retypes those that the page has lost: a page that renders again starts empty. */
export async function typeAll(
  view: View,
  known: readonly Entry[],
  allowed: AllowedHosts,
): Promise<Typed & { count: number }> {
  let count = 0
  const type = async ({ field, value }: Entry): Promise<Typed> => {
    const frame = view.frames[field.raw.frame]
    const typed = frame && (await callIn<Typed>(frame, typeInto, [field.places, value, allowed.roots, true]))
    if (typed?.outcome === 'typed') count += 1
    return typed ?? { outcome: 'gone' }
  }
  for (const entry of known) {
    const typed = await type(entry)
    // The last character of a code may submit it, which closes the page.
    if (typed.outcome === 'gone' && isOneTimeCode(entry.field.purpose) && count > 0) return { outcome: 'typed', count }
    if (typed.outcome !== 'typed') return { ...typed, count }
  }
  for (const entry of known) {
    const frame = view.frames[entry.field.raw.frame]
    const isThere =
      !frame || entry.value === '' || (await callIn<boolean>(frame, areFilled, [entry.field.places])) !== false
    if (!isThere && !isOneTimeCode(entry.field.purpose)) await type(entry)
  }
  return { outcome: 'typed', count }
}

/** Checks the checkboxes that the form requires, and presses its button. */
export async function sendForm(view: View, known: readonly Entry[], choice: KnownChoice | undefined): Promise<void> {
  const { form } = view.judgement
  for (const toggle of form?.toggles ?? []) {
    const isNeeded = toggle.isRequired && isTermsToggle(toggle)
    const isKept = toggle.type === 'checkbox' && !toggle.isChecked && pageWords.stayIn.isIn(toggle.label)
    const frame = view.frames[toggle.frame]
    if (frame && (isNeeded || isKept)) await press(frame, toggle.at)
  }
  const last = known.at(-1)?.field
  const frame = last && view.frames[last.raw.frame]
  if (!last || !frame) return
  const place = last.places.at(-1) ?? last.raw.at
  await callIn(frame, leaveField, [place])
  const target = choice?.element ?? form?.submit
  const own = target && view.frames[target.frame]
  if (!target || !own) return submitByKey(frame, place)
  await pressWhenEnabled(own, target.at)
}

/** Pages enable their buttons when they have processed the input. */
export async function pressWhenEnabled(frame: LoginFrame, at: number): Promise<void> {
  const end = performance.now() + reactionMilliseconds
  while ((await press(frame, at)) === 'disabled' && performance.now() < end) await delay(lookMilliseconds)
}

/** Pages repeat input in errors or URLs. */
export function withoutSecrets(page: LoginPage, secrets: readonly string[]): LoginPage {
  const forms = secrets.filter((secret) => secret.length >= 4).flatMap((secret) => [secret, encodeURIComponent(secret)])
  const clean = (value: unknown): unknown => {
    if (typeof value === 'string') return forms.reduce((text, form) => text.replaceAll(form, '•••'), value)
    if (Array.isArray(value)) return value.map(clean)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, clean(inner)]))
  }
  return clean(page) as LoginPage
}
