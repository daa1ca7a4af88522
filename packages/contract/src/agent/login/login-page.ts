import { z } from 'zod'

/** Pages write what they like: every text of them is cut to such a length, and every list too. */
export const maxLoginText = 300
export const maxLoginFields = 20
export const maxLoginChoices = 30

const PageText = z.string().max(maxLoginText)
/** Unique on its page, and valid as long as `page_key` is. */
const Ref = z.string().max(40)

export const LoginFieldPurpose = z.enum([
  ...(['username', 'email', 'phone', 'password'] as const),
  /** One-time codes; `code` where the page does not say which kind. */
  ...(['totp', 'sms_code', 'email_code', 'code', 'backup_code'] as const),
  /** Anything else that the form requires, such as a tenant or a customer number. */
  'other',
])
export type LoginFieldPurpose = z.infer<typeof LoginFieldPurpose>

export const LoginField = z.object({
  ref: Ref,
  /** The name under which a value is kept: the same at the next login. Unique on its page. */
  name: z.string().max(100),
  label: PageText,
  purpose: LoginFieldPurpose,
  input_mode: z.enum(['text', 'email', 'tel', 'numeric']),
  required: z.boolean(),
  /** The site has marked the value as wrong. */
  is_rejected: z.boolean(),
  placeholder: PageText.optional(),
  hint: PageText.optional(),
  /** The values that a list offers, with what it calls them. */
  options: z
    .array(z.object({ value: PageText, label: PageText }))
    .max(50)
    .optional(),
  /** CSS, within the frame and the shadow tree of the element. */
  selector: z.string().max(1_000),
})
export type LoginField = z.infer<typeof LoginField>

export const LoginMfaType = z.enum([
  ...(['sms', 'call', 'email', 'totp', 'push', 'password', 'passkey', 'switch', 'other'] as const),
])
export type LoginMfaType = z.infer<typeof LoginMfaType>

export const LoginChoice = z.object({
  ref: Ref,
  /**
   * `sso`: log in with another service. `mfa`: a way to prove the identity. `method`: another way to log in, such as
   * "continue with email". `account`: one of several accounts or organizations. `terms`: accept what the page shows.
   */
  kind: z.enum(['sso', 'mfa', 'method', 'account', 'terms', 'other']),
  label: PageText,
  description: PageText.optional(),
  /** Of `mfa` and `method`. */
  mfa_type: LoginMfaType.optional(),
  /** Of `mfa`: where the code goes, as the page shows it (`•••• 42`). */
  masked_destination: PageText.optional(),
  /** Of `sso`: in lower case, such as `google`; `sso` where the page names none. */
  provider: z.string().max(40).optional(),
  /** XPath, within the frame and the shadow tree of the element. */
  selector: z.string().max(1_000),
})
export type LoginChoice = z.infer<typeof LoginChoice>

/** What is wrong, where the driver knows. The names are those of the flow's error codes. */
export const LoginProblem = z.enum([
  /** The site refuses what was submitted: a wrong password or user, a wrong or late code. */
  ...(['credentials_invalid', 'code_rejected'] as const),
  /** The site says no for now, or for good. */
  ...(['account_locked', 'rate_limited', 'session_expired', 'website_error'] as const),
  ...(['bot_detected', 'captcha_blocked'] as const),
  /** Only a passkey would do, and there is no other choice. */
  'unsupported_auth_method',
  /** The page, one of its frames, or where its form is sent, is outside `allowed_domains`. */
  'domain_not_allowed',
  'login_form_not_found',
  /** The page could not be loaded. */
  'network_error',
])
export type LoginProblem = z.infer<typeof LoginProblem>

/** Why the driver takes a page for one of a logged-in user. Names of cookies only, never values. */
export const LoginEvidence = z.object({
  url: z.string().max(2_000),
  signs: z.array(z.string().max(100)).max(20),
  /** Cookies that the login has set. */
  cookies: z.array(z.string().max(200)).max(50),
})
export type LoginEvidence = z.infer<typeof LoginEvidence>

export const LoginPage = z.object({
  /** Names the page as it is now: documents, fields and choices. Changes with each submit and choice. */
  page_key: z.string().max(100),
  url: z.string().max(2_000),
  title: PageText,
  /**
   * - `form`: fields wait for values; there may be choices beside them.
   * - `choice`: choices only.
   * - `external_action`: a person has to act elsewhere; fields and choices may offer another way.
   * - `logged_in`: `evidence` says why.
   * - `captcha`: a challenge that is not solved stands in the way; the fields behind it are told.
   * - `blocked`: the site keeps the browser or the account out; `problem` says how.
   * - `error`: there is no way on; `problem` says why.
   * - `loading`: the page has not come to rest in time.
   * - `not_found`: nothing on the page belongs to a login.
   */
  state: z.enum([
    ...(['form', 'choice', 'external_action', 'logged_in'] as const),
    ...(['captcha', 'blocked', 'error', 'loading', 'not_found'] as const),
  ]),
  fields: z.array(LoginField).max(maxLoginFields),
  choices: z.array(LoginChoice).max(maxLoginChoices),
  problem: LoginProblem.optional(),
  /** What the site says about an error, in its words. */
  website_error: PageText.optional(),
  external_action_message: PageText.optional(),
  /** The hosts outside of `allowed_domains` that the page would involve, with `domain_not_allowed`. */
  denied_hosts: z.array(z.string().max(253)).max(10).optional(),
  evidence: LoginEvidence.optional(),
})
export type LoginPage = z.infer<typeof LoginPage>
