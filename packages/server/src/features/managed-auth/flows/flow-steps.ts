import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { LoginOutcome } from '@berth/contract/agent/login/login-endpoints.ts'
import type { LoginChoice, LoginField, LoginPage } from '@berth/contract/agent/login/login-page.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Updateable } from 'kysely'
import type { AuthFlowTable } from '../../../database/tables.ts'
import type { StoredConnection } from '../connection-store.ts'
import { isCode, type StoredLogin, storedValue, takesTotp } from '../stored-login/stored-login.ts'
import type { StoredLoginService } from '../stored-login/stored-login-service.ts'
import { isRestricted } from './allowed-domains.ts'
import {
  choiceMark,
  type Decision,
  decide,
  type FlowView,
  needsOf,
  type PlannedValue,
  ssoMark,
  totpMark,
  typedKey,
} from './decide.ts'
import type { FlowDrive } from './flow-drive.ts'
import type { FlowSecrets } from './flow-secrets.ts'
import { type FlowFailure, type HumanNeed, inputMilliseconds } from './flow-state.ts'
import type { FlowStore, StoredFlow } from './flow-store.ts'
import { type LoginAdvisor, maxQuestions, openChoices } from './login-advisor.ts'

/** A login needs fewer steps. A flow that reaches the limit is in a loop. */
const maxActions = 30
const maxRefusals = 2
/** A code that expires this soon may be too late when it arrives. */
const freshMilliseconds = 3_000

interface FlowStepsOptions {
  readonly store: FlowStore
  readonly secrets: FlowSecrets
  readonly storedLogins: StoredLoginService
  readonly advisor: LoginAdvisor | undefined
  readonly onChange: (flow: StoredFlow) => void
  readonly clock: Clock
}

/** The row of a flow and the browser that runs it. */
export interface Step {
  readonly flow: StoredFlow
  readonly connection: StoredConnection
  readonly drive: FlowDrive
  readonly signal: AbortSignal
}

/**
 * Performs the steps of a flow on a page. Before anything is typed or pressed, the row is updated by a statement that
 * requires the version that was read. So after a crash, the next runner knows what may have been typed and does not
 * type it again.
 */
export class FlowSteps {
  readonly #options: FlowStepsOptions

  constructor(options: FlowStepsOptions) {
    this.#options = options
  }

  /** Observes the page and does what it requires. */
  async proceed({ flow, connection, drive, signal }: Step): Promise<void> {
    const page = await this.#pageOf({ flow, connection, drive, signal })
    if (!page) return
    const storedLogin = await this.#storedLoginOf({ flow, connection, drive, signal })
    const { isUnrestricted, denied } = denialOf(connection, page)
    if (isUnrestricted && denied.length > 0) return this.#follow({ flow, drive }, denied)
    const view = this.#view(flow, storedLogin, drive)
    const step = { flow, connection, drive, signal }
    const decision = decide(page, view)
    await this.#carryOut((await this.#advice(decision, view, page, step)) ?? decision, step, page, storedLogin)
  }

  /** If only a person could continue, the operator's model, if there is one, chooses. */
  async #advice(decision: Decision, view: FlowView, page: LoginPage, step: Step): Promise<Decision | undefined> {
    const { advisor, secrets } = this.#options
    const { flow, connection, drive, signal } = step
    if (!advisor || drive.questions >= maxQuestions) return undefined
    const choices = openChoices(page, view, decision)
    if (choices.length === 0) return undefined
    drive.questions += 1
    const inputs = await secrets.openInputs(connection.project_id, flow)
    return advisor.advise({ page, storedLogin: view.storedLogin, inputs, choices }, signal)
  }

  /** Observes the page while an action elsewhere is pending. Returns whether the page has changed. */
  async watch({ flow, connection, drive, signal }: Step): Promise<boolean> {
    const page = await drive.observe(flow, flow.page?.page_key)
    signal.throwIfAborted()
    if (page.page_key === flow.page?.page_key || page.state === 'loading') return false
    const storedLogin = await this.#storedLoginOf({ flow, connection, drive, signal })
    const decision = decide(page, this.#view(flow, storedLogin, drive))
    if (decision.do === 'look') return false
    await this.#carryOut(decision, { flow, connection, drive, signal }, page, storedLogin)
    return true
  }

  /** A person may log in manually in the live view instead of answering. */
  async notice({ flow, drive, signal }: Step): Promise<void> {
    const page = await drive.observe(flow)
    signal.throwIfAborted()
    if (page.state === 'logged_in') await this.#succeed(flow, page)
  }

  /** Types or presses the answer, together with the stored values for the same page. */
  async useAnswer({ flow, connection, drive, signal }: Step): Promise<void> {
    const { secrets } = this.#options
    const { page, sealed_answer: sealed } = flow
    if (!page || !sealed) return
    const answer = await secrets.openAnswer(connection.project_id, flow.id, sealed)
    const needs = new Set(flow.requirements)
    if (answer.kind === 'choice') {
      const choice = page.choices.find(({ ref }) => ref === answer.ref)
      if (choice) for (const need of needsOfChoice(choice)) needs.add(need)
      const began = await this.#begin({ flow, drive }, page, { requirements: JSON.stringify([...needs]) })
      if (began) await this.#settle({ flow: began, drive }, await drive.choose(began, page, answer.ref), [])
      return
    }
    const fieldOf = (ref: string) => page.fields.find((field) => field.ref === ref)
    const inputs = new Map(await secrets.openInputs(connection.project_id, flow))
    const values: (readonly [LoginField, string])[] = []
    for (const [ref, value] of answer.values) {
      const field = fieldOf(ref)
      if (!field) continue
      values.push([field, value])
      if (isCode(field)) for (const need of needsOf([field], [], false)) needs.add(need)
      else inputs.set(field.name, value)
    }
    const isFilledIn = flow.known_refs.length > 0
    const storedLogin = isFilledIn ? await this.#storedLoginOf({ flow, connection, drive, signal }) : undefined
    const known = storedLogin ? this.#knownValues(page, flow.known_refs, storedLogin) : []
    const began = await this.#begin({ flow, drive }, page, {
      sealed_inputs: await secrets.sealInputs(connection.project_id, flow.id, inputs),
      requirements: JSON.stringify([...needs]),
      typed: JSON.stringify([...flow.typed, ...known.map(({ mark }) => mark)]),
    })
    if (!began) return
    const all = [...known.map(({ field, value }) => [field, value] as const), ...values]
    signal.throwIfAborted()
    await this.#settle({ flow: began, drive }, await drive.type(began, page, inOrder(page, all), true), [])
  }

  #knownValues(page: LoginPage, refs: readonly string[], storedLogin: StoredLogin) {
    return page.fields.flatMap((field) => {
      if (!refs.includes(field.ref)) return []
      const value = takesTotp(storedLogin, field)
        ? storedLogin.totp?.(this.#options.clock.now()).code
        : storedValue(storedLogin, field)
      return value === undefined ? [] : [{ field, value, mark: isCode(field) ? totpMark : typedKey(page, field) }]
    })
  }

  /** Read once for each run. A person can replace what a provider does not return. */
  async #storedLoginOf({ flow, connection, drive }: Step): Promise<StoredLogin | undefined> {
    const { storedLogins } = this.#options
    drive.storedLogin ??= flow.is_attended
      ? storedLogins.open(connection).catch(storedLogins.ignoreProvider)
      : storedLogins.open(connection)
    return drive.storedLogin
  }

  async fail(flow: StoredFlow, { code, message, websiteError }: FlowFailure): Promise<void> {
    const { store, clock, onChange } = this.#options
    const columns = { error_code: code, error_message: message, website_error: websiteError ?? null }
    const failed = await store.end(
      flow.id,
      { status: 'FAILED', ...columns },
      { now: clock.now(), version: flow.version },
    )
    if (failed) onChange(failed)
  }

  async #pageOf({ flow, drive, signal }: Step): Promise<LoginPage | undefined> {
    const page = drive.page ?? (await drive.observe(flow, drive.looks > 0 ? flow.page?.page_key : undefined))
    drive.page = undefined
    signal.throwIfAborted()
    return page
  }

  #view(flow: StoredFlow, storedLogin: StoredLogin | undefined, { looks }: FlowDrive): FlowView {
    const hasActed = flow.typed.length > 0 || flow.sealed_inputs !== null || flow.acting_on !== null
    return { isAttended: flow.is_attended, storedLogin, typed: flow.typed, hasActed, looks }
  }

  async #carryOut(
    decision: Decision,
    step: Step,
    page: LoginPage,
    storedLogin: StoredLogin | undefined,
  ): Promise<void> {
    const { flow, drive, signal, connection } = step
    switch (decision.do) {
      case 'succeed':
        return this.#succeed(flow, page)
      case 'look':
        drive.looks += 1
        // The agent has waited for a loading page. A page without a login may still show one.
        await delay(page.state === 'loading' ? 0 : 1_000, undefined, { signal })
        return
      case 'reopen':
        drive.looks += 1
        await drive.open(flow)
        return
      case 'type':
        if (storedLogin) await this.#type(step, page, decision.values, storedLogin)
        return
      case 'choose':
        return this.#choose(step, page, decision.choice)
      case 'ask':
        return this.#ask(flow, page, decision.known)
      case 'wait':
        return this.#wait(flow, page, decision.message)
      case 'fail':
        if (storedLogin && refusals.includes(decision.failure.code))
          await this.#options.storedLogins.noteRefusal(connection, storedLogin)
        return this.fail(flow, decision.failure)
    }
  }

  async #succeed(flow: StoredFlow, { url, evidence }: LoginPage): Promise<void> {
    await this.#change(flow, {
      step: flow.step === 'AWAITING_INPUT' ? 'SUBMITTING' : nextStep(flow),
      evidence: JSON.stringify(evidence ?? { url, signs: [], cookies: [] }),
      post_login_url: url,
      page: null,
      known_refs: '[]',
      interaction_id: null,
      external_action_message: null,
      waits_until: null,
    })
  }

  async #type(
    { flow, drive, signal }: Step,
    page: LoginPage,
    planned: readonly PlannedValue[],
    storedLogin: StoredLogin,
  ): Promise<void> {
    const marks = planned.map(({ field, source }) => (source === 'totp' ? totpMark : typedKey(page, field)))
    const began = await this.#begin({ flow, drive }, page, { typed: JSON.stringify([...flow.typed, ...marks]) })
    if (!began) return
    const values: (readonly [LoginField, string])[] = []
    for (const { field, source } of planned) {
      const value =
        source === 'totp' ? await this.#freshCode(flow, storedLogin, signal) : storedValue(storedLogin, field)
      if (value !== undefined) values.push([field, value])
    }
    signal.throwIfAborted()
    await this.#settle({ flow: began, drive }, await drive.type(began, page, values, false), marks)
  }

  /** A code that was not typed in this flow before and stays valid for a while. */
  async #freshCode({ typed }: StoredFlow, { totp }: StoredLogin, signal: AbortSignal): Promise<string | undefined> {
    const { clock } = this.#options
    const first = totp?.(clock.now())
    if (!totp || !first) return undefined
    const left = first.expiresAt.getTime() - clock.now().getTime()
    if (!typed.includes(totpMark) && left > freshMilliseconds) return first.code
    await delay(left + 50, undefined, { signal })
    return totp(clock.now()).code
  }

  async #choose({ flow, drive }: Step, page: LoginPage, choice: LoginChoice): Promise<void> {
    const provider = choice.kind === 'sso' ? choice.provider : undefined
    const marks = [provider ? ssoMark(provider) : choiceMark(page, choice)]
    const began = await this.#begin({ flow, drive }, page, {
      typed: JSON.stringify([...flow.typed, ...marks]),
      ...(provider && { sso_provider: provider }),
    })
    if (began) await this.#settle({ flow: began, drive }, await drive.choose(began, page, choice.ref), [])
  }

  /**
   * Records the next action in the row. Returns undefined if the flow has changed meanwhile, and then the action must
   * not happen.
   */
  async #begin(
    { flow, drive }: Pick<Step, 'flow' | 'drive'>,
    page: LoginPage,
    columns: Updateable<AuthFlowTable>,
  ): Promise<StoredFlow | undefined> {
    drive.looks = 0
    return this.#change(flow, {
      step: 'SUBMITTING',
      acting_on: page.page_key,
      page: null,
      known_refs: '[]',
      sealed_answer: null,
      interaction_id: null,
      website_error: null,
      external_action_message: null,
      waits_until: null,
      ...columns,
    })
  }

  /** Uses the page after the action. Values that were not typed after all may be typed later. */
  async #settle(
    { flow, drive }: Pick<Step, 'flow' | 'drive'>,
    { outcome, typed, page }: LoginOutcome,
    marks: readonly string[],
  ): Promise<void> {
    const isUndone = !typed && outcome !== 'done' && outcome !== 'already_typed'
    if (isUndone && marks.length > 0) {
      const remaining = flow.typed.slice(0, flow.typed.length - marks.length)
      if (!(await this.#change(flow, { typed: JSON.stringify(remaining) }))) return
    }
    if (outcome === 'done' && flow.typed.length > maxActions) {
      const message = 'The login took too many steps.'
      return this.fail(flow, { code: 'max_steps_exceeded', message })
    }
    // The earlier page is outdated.
    drive.page = outcome === 'stale' || outcome === 'unknown_ref' ? undefined : page
    if (outcome === 'done' || outcome === 'already_typed' || outcome === 'domain_not_allowed') return
    drive.refusals += 1
    if (drive.refusals <= maxRefusals) return
    await this.fail(flow, { code: 'element_not_found', message: 'A page of the login does not accept what is typed.' })
  }

  /** A connection without a list of domains follows its login to any host. */
  async #follow({ flow, drive }: Pick<Step, 'flow' | 'drive'>, hosts: readonly string[]): Promise<void> {
    drive.looks += 1
    if (drive.looks > maxActions) {
      return this.fail(flow, { code: 'stuck_in_loop', message: 'The login redirects between too many hosts.' })
    }
    await this.#change(flow, { led_to: JSON.stringify([...flow.led_to, ...hosts]) })
  }

  async #ask(flow: StoredFlow, page: LoginPage, known: readonly LoginField[]): Promise<void> {
    await this.#change(flow, {
      step: 'AWAITING_INPUT',
      page: JSON.stringify(page),
      known_refs: JSON.stringify(known.map(({ ref }) => ref)),
      interaction_id: randomUUID(),
      website_error: page.website_error ?? null,
      external_action_message: null,
      waits_until: this.#inputEnd(),
    })
  }

  async #wait(flow: StoredFlow, page: LoginPage, message: string): Promise<void> {
    const hasFallback = page.fields.length > 0 || page.choices.length > 0
    const needs = [...new Set<HumanNeed>([...flow.requirements, 'external_action'])]
    await this.#change(flow, {
      step: 'AWAITING_EXTERNAL_ACTION',
      page: JSON.stringify(page),
      known_refs: '[]',
      interaction_id: hasFallback ? randomUUID() : null,
      website_error: page.website_error ?? null,
      external_action_message: message,
      requirements: JSON.stringify(needs),
      waits_until: flow.waits_until ?? this.#inputEnd(),
    })
  }

  #inputEnd(): Date {
    return new Date(this.#options.clock.now().getTime() + inputMilliseconds)
  }

  async #change(flow: StoredFlow, columns: Updateable<AuthFlowTable>): Promise<StoredFlow | undefined> {
    const { store, clock, onChange } = this.#options
    const changed = await store.change(flow, columns, clock.now())
    if (changed) onChange(changed)
    return changed
  }
}

/** The codes with which a site rejects the stored values, so they are not tried again. */
const refusals: readonly string[] = ['credentials_invalid', 'account_locked', 'totp_code_rejected']

function denialOf(connection: StoredConnection, page: LoginPage) {
  const isUnrestricted = !isRestricted(connection)
  return { isUnrestricted, denied: page.problem === 'domain_not_allowed' ? (page.denied_hosts ?? []) : [] }
}

function needsOfChoice(choice: LoginChoice): readonly HumanNeed[] {
  if (choice.kind === 'account') return ['account_choice']
  return choice.kind === 'mfa' ? ['mfa_choice'] : []
}

/** In the order of the page, whatever the source of a value. */
function inOrder({ fields }: LoginPage, values: readonly (readonly [LoginField, string])[]) {
  return fields.flatMap((field) => values.filter(([{ ref }]) => ref === field.ref))
}

function nextStep({ step }: StoredFlow): 'DISCOVERING' | 'SUBMITTING' {
  return step === 'DISCOVERING' ? 'DISCOVERING' : 'SUBMITTING'
}
