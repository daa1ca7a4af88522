import { z } from 'zod'

/** Limits of texts and lists from pages, which are untrusted. Longer ones are truncated. */
export const maxLoginText = 300
export const maxLoginFields = 20
export const maxLoginChoices = 30

const PageText = z.string().max(maxLoginText)
/** Unique on its page and valid as long as `page_key`. */
const Ref = z.string().max(40)

export const LoginFieldPurpose = z.enum([
  ...(['username', 'email', 'phone', 'password'] as const),
  /** One-time codes. `code` when the page does not name the kind. */
  ...(['totp', 'sms_code', 'email_code', 'code', 'backup_code'] as const),
  /** Anything else that the form requires, such as a tenant or a customer number. */
  'other',
])
export type LoginFieldPurpose = z.infer<typeof LoginFieldPurpose>

export const LoginField = z.object({
  ref: Ref,
  /** The name under which a value is stored, stable between logins. Unique on its page. */
  name: z.string().max(100),
  label: PageText,
  purpose: LoginFieldPurpose,
  input_mode: z.enum(['text', 'email', 'tel', 'numeric']),
  required: z.boolean(),
  /** The site has marked the value as wrong. */
  is_rejected: z.boolean(),
  placeholder: PageText.optional(),
  hint: PageText.optional(),
  /** The values of a list, with their labels. */
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
  /** Set for `mfa` and `method`. */
  mfa_type: LoginMfaType.optional(),
  /** Set for `mfa`: where the code is sent, as the page shows it (`•••• 42`). */
  masked_destination: PageText.optional(),
  /** Set for `sso`: in lower case, such as `google`. `sso` when the page names none. */
  provider: z.string().max(40).optional(),
  /** XPath, within the frame and the shadow tree of the element. */
  selector: z.string().max(1_000),
})
export type LoginChoice = z.infer<typeof LoginChoice>

/** The problem, if the login driver recognizes it. The names are error codes of flows. */
export const LoginProblem = z.enum([
  /** The site rejects what was submitted: a wrong password or user, or a wrong or expired code. */
  ...(['credentials_invalid', 'code_rejected'] as const),
  /** The site denies the login temporarily or permanently. */
  ...(['account_locked', 'rate_limited', 'session_expired', 'website_error'] as const),
  ...(['bot_detected', 'captcha_blocked'] as const),
  /** The site accepts only a passkey. */
  'unsupported_auth_method',
  /** The page, one of its frames, or the target of its form is outside `allowed_domains`. */
  'domain_not_allowed',
  'login_form_not_found',
  /** The page could not be loaded. */
  'network_error',
])
export type LoginProblem = z.infer<typeof LoginProblem>

/** Why the login driver considers the user logged in. Contains names of cookies, never values. */
export const LoginEvidence = z.object({
  url: z.string().max(2_000),
  signs: z.array(z.string().max(100)).max(20),
  /** Cookies that the login set. */
  cookies: z.array(z.string().max(200)).max(50),
})
export type LoginEvidence = z.infer<typeof LoginEvidence>

export const LoginPage = z.object({
  /** Identifies the current state of the page: documents, fields and choices. Changes with each submit and choice. */
  page_key: z.string().max(100),
  url: z.string().max(2_000),
  title: PageText,
  /**
   * - `form`: fields wait for values. There may also be choices.
   * - `choice`: only choices.
   * - `external_action`: a person has to act elsewhere. Fields and choices may offer another way.
   * - `logged_in`: `evidence` gives the reason.
   * - `captcha`: an unsolved captcha blocks the page. `fields` contains the fields behind it.
   * - `blocked`: the site rejects the browser or the account. `problem` gives the reason.
   * - `error`: the login cannot continue. `problem` gives the reason.
   * - `loading`: the page did not become idle in time.
   * - `not_found`: nothing on the page belongs to a login.
   */
  state: z.enum([
    ...(['form', 'choice', 'external_action', 'logged_in'] as const),
    ...(['captcha', 'blocked', 'error', 'loading', 'not_found'] as const),
  ]),
  fields: z.array(LoginField).max(maxLoginFields),
  choices: z.array(LoginChoice).max(maxLoginChoices),
  problem: LoginProblem.optional(),
  /** The error message of the site. */
  website_error: PageText.optional(),
  external_action_message: PageText.optional(),
  /** Set with `domain_not_allowed`: the hosts outside `allowed_domains` that the page would involve. */
  denied_hosts: z.array(z.string().max(253)).max(10).optional(),
  evidence: LoginEvidence.optional(),
})
export type LoginPage = z.infer<typeof LoginPage>
