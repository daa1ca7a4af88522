import { z } from 'zod'
import { defineEndpoint } from '../../endpoint.ts'
import { LoginEvidence, LoginPage, maxLoginFields } from './login-page.ts'
import { loginRoutes } from './login-routes.ts'

const tag = 'Agent'

/**
 * Roots of host names: each allows the host and those below it; a leading `www.` or `*.` counts for nothing. Secrets are
 * typed only where the page, the element's frame and all frames around it, and the target of its form are within, and
 * while they are submitted, no request takes them elsewhere.
 */
const AllowedDomains = z.array(z.string().max(253)).min(1).max(200)

/** For each call, the time by which the page must have come to rest. What is late is told as `loading`. */
const WaitMilliseconds = z.int().min(0).max(60_000)

const maxValueLength = 4_096

/** What has become of an action; the page is the one after it. */
const LoginOutcome = z.object({
  /**
   * - `done`: the values were typed and submitted, or the choice was pressed.
   * - `stale`: the page is not the one of `page_key` any longer. Nothing was done.
   * - `unknown_ref`: the page has no such field or choice. Nothing was done.
   * - `domain_not_allowed`: an element or its form belongs to a host outside (nothing was typed), or the page was about to
   *   send a secret to one (the request was stopped). `page.denied_hosts` names it.
   * - `already_typed`: this password was typed on this site before. Nothing was done.
   * - `not_typed`: the page took the element away or did not accept the text. `typed` says whether any of it was entered.
   */
  outcome: z.enum(['done', 'stale', 'unknown_ref', 'domain_not_allowed', 'already_typed', 'not_typed']),
  /** Whether any value has come into the page. */
  typed: z.boolean(),
  page: LoginPage,
})
export type LoginOutcome = z.infer<typeof LoginOutcome>

/**
 * Opens the login page of the domain in the tab that a person sees: `login_url`, or what links of the home page and
 * well-known paths lead to. Forgets what it knew of an earlier login. Where the browser is logged in already, it says so.
 */
export const openLogin = defineEndpoint({
  operationId: 'openLogin',
  ...loginRoutes.openLogin,
  summary: 'Open the login page of a site',
  tag,
  access: 'internal',
  body: z.object({
    domain: z.string().max(253),
    login_url: z.string().max(2_000).optional(),
    allowed_domains: AllowedDomains,
    timeout_ms: WaitMilliseconds.default(45_000),
  }),
  reply: LoginPage,
  status: 200,
  errors: [],
})
export type OpenLoginRequest = z.output<typeof openLogin.body & {}>

/** The page at rest. With `page_key`, waits up to `wait_ms` until it is another one than that. */
export const observeLogin = defineEndpoint({
  operationId: 'observeLogin',
  ...loginRoutes.observeLogin,
  summary: 'Observe the page of a login',
  tag,
  access: 'internal',
  body: z.object({
    allowed_domains: AllowedDomains,
    page_key: z.string().max(100).optional(),
    wait_ms: WaitMilliseconds.default(0),
    timeout_ms: WaitMilliseconds.default(20_000),
  }),
  reply: LoginPage,
  status: 200,
  errors: [],
})
export type ObserveLoginRequest = z.output<typeof observeLogin.body & {}>

/**
 * Types values into fields, presses the button of their form (or the choice of `press`), and waits for what comes. A page
 * key is good for one submit: a second one with the same key is `stale`, so that a repeated call types nothing.
 */
export const submitLogin = defineEndpoint({
  operationId: 'submitLogin',
  ...loginRoutes.submitLogin,
  summary: 'Type values into the form of a login, and submit it',
  tag,
  access: 'internal',
  body: z.object({
    allowed_domains: AllowedDomains,
    page_key: z.string().max(100),
    values: z
      .array(z.object({ ref: z.string().max(40), value: z.string().max(maxValueLength) }))
      .min(1)
      .max(maxLoginFields),
    press: z.string().max(40).optional(),
    /** A person has entered the values for this page: the same password may be typed again. */
    is_new_input: z.boolean().default(false),
    timeout_ms: WaitMilliseconds.default(30_000),
  }),
  reply: LoginOutcome,
  status: 200,
  errors: [],
})
export type SubmitLoginRequest = z.output<typeof submitLogin.body & {}>

/** Presses a choice and waits for what comes. */
export const chooseLogin = defineEndpoint({
  operationId: 'chooseLogin',
  ...loginRoutes.chooseLogin,
  summary: 'Press a choice on the page of a login',
  tag,
  access: 'internal',
  body: z.object({
    allowed_domains: AllowedDomains,
    page_key: z.string().max(100),
    ref: z.string().max(40),
    timeout_ms: WaitMilliseconds.default(30_000),
  }),
  reply: LoginOutcome,
  status: 200,
  errors: [],
})
export type ChooseLoginRequest = z.output<typeof chooseLogin.body & {}>

/**
 * Says whether the browser is logged in: opens `url` (else the URL of the evidence, else the home page) and compares what
 * it finds with the evidence of the last login. Types and presses nothing.
 */
export const checkLogin = defineEndpoint({
  operationId: 'checkLogin',
  ...loginRoutes.checkLogin,
  summary: 'Check whether the browser is logged in to a site',
  tag,
  access: 'internal',
  body: z.object({
    domain: z.string().max(253),
    url: z.string().max(2_000).optional(),
    evidence: LoginEvidence.optional(),
    allowed_domains: AllowedDomains,
    timeout_ms: WaitMilliseconds.default(30_000),
  }),
  reply: z.object({
    /** `unknown`: the site does not answer as it should, or nothing tells. */
    logged_in: z.enum(['yes', 'no', 'unknown']),
    evidence: LoginEvidence,
    problem: z.string().max(100).optional(),
  }),
  status: 200,
  errors: [],
})
export type CheckLoginRequest = z.output<typeof checkLogin.body & {}>
export type CheckLoginReply = z.output<typeof checkLogin.reply & {}>
