import { z } from 'zod'
import { defineEndpoint } from '../../endpoint.ts'
import { LoginEvidence, LoginPage, maxLoginFields } from './login-page.ts'
import { loginRoutes } from './login-routes.ts'

const tag = 'Agent'

/**
 * Each entry permits a host and its subdomains. A leading `www.` or `*.` is ignored. Secrets are typed only if the
 * page, the element's frame and all frames around it, and the target of its form are permitted. While secrets are
 * submitted, requests to other hosts are stopped.
 */
const AllowedDomains = z.array(z.string().max(253)).min(1).max(200)

/** The time in which the page must become idle. Otherwise its state is `loading`. */
const WaitMilliseconds = z.int().min(0).max(60_000)

const maxValueLength = 4_096

/** The result of an action, with the page after it. */
const LoginOutcome = z.object({
  /**
   * - `done`: the values were typed and submitted, or the choice was pressed.
   * - `stale`: the page of `page_key` has changed. Nothing was done.
   * - `unknown_ref`: the page has no such field or choice. Nothing was done.
   * - `domain_not_allowed`: an element or its form belongs to a host that is not permitted (nothing was typed), or the
   *   page was about to send a secret to such a host (the request was stopped). `page.denied_hosts` contains it.
   * - `already_typed`: this password was typed on this site before. Nothing was done.
   * - `not_typed`: the page removed the element or did not accept the text. `typed` says whether any of it was entered.
   */
  outcome: z.enum(['done', 'stale', 'unknown_ref', 'domain_not_allowed', 'already_typed', 'not_typed']),
  /** Whether any value was entered in the page. */
  typed: z.boolean(),
  page: LoginPage,
})
export type LoginOutcome = z.infer<typeof LoginOutcome>

/**
 * Opens the login page of the domain in the visible tab: `login_url`, or a page found by links of the home page and by
 * well-known paths. Discards the state of an earlier login. Reports a browser that is already logged in.
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

/** Returns the page when it is idle. With `page_key`, waits up to `wait_ms` for a page with another key. */
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
 * Types values into fields, presses the button of their form (or the choice in `press`), and waits for the next page. A
 * page key permits one submit: a second one with the same key is `stale`, so a repeated call types nothing.
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
    /** A person has entered the values for this page, so the same password may be typed again. */
    is_new_input: z.boolean().default(false),
    timeout_ms: WaitMilliseconds.default(30_000),
  }),
  reply: LoginOutcome,
  status: 200,
  errors: [],
})
export type SubmitLoginRequest = z.output<typeof submitLogin.body & {}>

/** Presses a choice and waits for the next page. */
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
 * Checks whether the browser is logged in: opens `url` (or the URL of the evidence, or the home page) and compares the
 * page with the evidence of the last login. Types and presses nothing.
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
    /** `unknown`: the site does not respond as expected, or the page is inconclusive. */
    logged_in: z.enum(['yes', 'no', 'unknown']),
    evidence: LoginEvidence,
    problem: z.string().max(100).optional(),
  }),
  status: 200,
  errors: [],
})
export type CheckLoginRequest = z.output<typeof checkLogin.body & {}>
export type CheckLoginReply = z.output<typeof checkLogin.reply & {}>
