import { z } from 'zod'
import { Region } from '../browsers/browser.ts'
import { BrowserProxyConfig, BrowserProxyRouteTarget } from '../browsers/proxy-selection.ts'
import { BrowserTelemetryRequestConfig } from '../browsers/telemetry-config.ts'
import { nameOf } from '../common/text.ts'
import { Timestamp } from '../common/time.ts'
import { CredentialDomain, CredentialName } from '../credentials/credential.ts'
import { ProfileName } from '../profiles/profile.ts'
import { AuthChoice, AuthField, DiscoveredField, MfaOption, PendingSsoButton, SignInOption } from './interaction.ts'

export const minHealthCheckSeconds = 300
export const maxHealthCheckSeconds = 86_400
export const defaultHealthCheckSeconds = 3_600

const maxAllowedDomains = 50
const maxUrlLength = 2048
const maxPathLength = 1024

export const ConnectionStatus = z.enum(['AUTHENTICATED', 'NEEDS_AUTH'])
export type ConnectionStatus = z.infer<typeof ConnectionStatus>

export const FlowStatus = z.enum(['IN_PROGRESS', 'SUCCESS', 'FAILED', 'EXPIRED', 'CANCELED'])
export type FlowStatus = z.infer<typeof FlowStatus>

export const FlowStep = z.enum(['DISCOVERING', 'AWAITING_INPUT', 'AWAITING_EXTERNAL_ACTION', 'SUBMITTING', 'COMPLETED'])
export type FlowStep = z.infer<typeof FlowStep>

export const FlowType = z.enum(['LOGIN', 'REAUTH'])
export type FlowType = z.infer<typeof FlowType>

/** The values of the public API. */
export const ReauthReason = z.enum([
  'external_credential',
  'cua_has_credential',
  'has_credential',
  'viable_plans_found',
  'no_requirements_recorded',
  'totp_reauth_allowed',
  'optimistic_totp_attempt',
  'requirements_satisfiable',
  'no_prior_successful_login',
  'no_credential',
  'no_viable_plans',
  'viable_plans_require_external_action',
  'requires_external_action',
  'requires_totp_without_secret',
  'requires_sms_code',
  'requires_email_code',
  'requires_customer_input',
])
export type ReauthReason = z.infer<typeof ReauthReason>

const LoginUrl = z
  .string()
  .max(maxUrlLength, { error: `must have at most ${maxUrlLength} characters` })
  .refine((text) => ['http:', 'https:'].includes(URL.parse(text)?.protocol ?? ''), {
    error: 'must be an http or https address',
  })
  .refine((text) => !URL.parse(text)?.username, { error: 'must not contain a user name' })

/** `www.` and `*.` are redundant: subdomains are permitted anyway. */
const AllowedDomain = z
  .string()
  .max(300)
  .transform((text) =>
    text
      .trim()
      .replace(/^\*\./, '')
      .replace(/^www\./i, ''),
  )
  .pipe(CredentialDomain)
  .meta({ override: { type: 'string' } })

const AllowedDomains = z
  .array(AllowedDomain)
  .max(maxAllowedDomains)
  .meta({
    description:
      'Hosts, with their subdomains, where values may be entered, in addition to `domain` and the usual identity ' +
      'providers. An empty list permits every host that the login leads to.',
  })

const PathPart = nameOf(255).refine((name) => !name.includes('/'), { error: 'must have no /' })

export const CredentialReference = z
  .strictObject({
    name: CredentialName.optional().meta({ description: 'A credential of the project.' }),
    provider: PathPart.optional().meta({ description: 'The name of a credential provider of the organization.' }),
    path: z
      .string()
      .max(maxPathLength)
      .regex(/^[^/]+\/[^/]+$/, { error: 'must be Vault/Item, with one /' })
      .optional(),
    auto: z.boolean().optional().meta({ description: 'Looks the item up by the domain.' }),
  })
  .superRefine(({ name, provider, path, auto }, context) => {
    const refuse = (field: string, message: string) => context.addIssue({ code: 'custom', path: [field], message })
    if ((name === undefined) === (provider === undefined)) refuse('name', 'must be there, or provider, and not both')
    if (path !== undefined && provider === undefined) refuse('path', 'needs provider')
    if (auto && provider === undefined) refuse('auto', 'needs provider')
    if (path !== undefined && auto) refuse('auto', 'cannot be combined with path')
  })
  .meta({ id: 'CredentialReference' })
export type CredentialReference = z.output<typeof CredentialReference>

export const ManagedAuthBrowserConfig = z
  .strictObject({
    proxy: BrowserProxyConfig.optional(),
    region: Region.optional(),
    stealth: z.boolean().optional().meta({ description: 'Default: true.' }),
    telemetry: BrowserTelemetryRequestConfig.nullish(),
  })
  .meta({ id: 'ManagedAuthBrowserConfig' })
export type ManagedAuthBrowserConfig = z.output<typeof ManagedAuthBrowserConfig>

/** The browser settings of flows, in both spellings. */
const browserFields = {
  browser: ManagedAuthBrowserConfig.optional(),
  proxy: BrowserProxyRouteTarget.optional().meta({ deprecated: true, description: 'Use browser.proxy.' }),
  browser_telemetry: BrowserTelemetryRequestConfig.nullish().meta({
    deprecated: true,
    description: 'Use browser.telemetry.',
  }),
}

interface BrowserFields {
  readonly browser?: ManagedAuthBrowserConfig | undefined
  readonly proxy?: unknown
  readonly browser_telemetry?: unknown
}

function checkBrowserFields(
  { browser, proxy, browser_telemetry }: BrowserFields,
  context: z.core.$RefinementCtx,
): void {
  const refuse = (field: string, other: string) =>
    context.addIssue({ code: 'custom', path: [field], message: `cannot be combined with ${other}` })
  if (proxy !== undefined && browser?.proxy !== undefined) refuse('proxy', 'browser.proxy')
  if (browser_telemetry !== undefined && browser?.telemetry !== undefined) {
    refuse('browser_telemetry', 'browser.telemetry')
  }
}

const settings = {
  credential: CredentialReference.optional().meta({ description: 'Without it, a flow waits for its values.' }),
  allowed_domains: AllowedDomains.optional(),
  health_check_interval: z
    .int()
    .min(minHealthCheckSeconds)
    .max(maxHealthCheckSeconds)
    .optional()
    .meta({ description: 'Seconds between two checks. Default: 3600.' }),
  health_checks: z.boolean().optional().meta({ description: 'Default: true.' }),
  auto_reauth: z
    .boolean()
    .optional()
    .meta({ description: 'Log in again when a check finds the profile logged out. Default: true.' }),
  save_credentials: z
    .boolean()
    .optional()
    .meta({ description: 'Store the values of a successful login in a credential. Default: true.' }),
  record_session: z.boolean().optional().meta({ description: 'Default: false.' }),
  ...browserFields,
}

export const ConnectionCreateRequest = z
  .strictObject({
    domain: CredentialDomain.meta({ description: 'The site.' }),
    profile_name: ProfileName.meta({ description: 'The profile. It is created if there is none.' }),
    login_url: LoginUrl.optional().meta({ description: 'The login page. When absent, berth searches for it.' }),
    ...settings,
  })
  .superRefine(checkBrowserFields)
  .meta({ id: 'ManagedAuthCreateRequest' })
export type ConnectionCreateRequest = z.output<typeof ConnectionCreateRequest>

export const ConnectionUpdateRequest = z
  .strictObject({
    login_url: z
      .union([z.literal(''), LoginUrl])
      .optional()
      .meta({ description: 'An empty text removes it.' }),
    ...settings,
  })
  .superRefine(checkBrowserFields)
  .meta({ id: 'ManagedAuthUpdateRequest' })
export type ConnectionUpdateRequest = z.output<typeof ConnectionUpdateRequest>

/** What a login can override of its connection. */
export const LoginRequest = z
  .strictObject({
    record_session: z.boolean().optional(),
    ...browserFields,
    skill_mode: z
      .enum(['enabled', 'disabled'])
      .optional()
      .refine((mode) => mode !== 'enabled', { error: 'must be disabled: this version of berth has no skills' }),
  })
  .superRefine(checkBrowserFields)
  .optional()
  .meta({ id: 'ManagedAuthLoginRequest' })
export type LoginRequest = z.output<typeof LoginRequest>

const flowState = {
  flow_type: FlowType.nullable().optional(),
  interaction_id: z.string().nullable().optional(),
  fields: z.array(AuthField).nullable().optional(),
  choices: z.array(AuthChoice).nullable().optional(),
  discovered_fields: z.array(DiscoveredField).nullable().optional().meta({ deprecated: true }),
  mfa_options: z.array(MfaOption).nullable().optional().meta({ deprecated: true }),
  sign_in_options: z.array(SignInOption).nullable().optional().meta({ deprecated: true }),
  pending_sso_buttons: z.array(PendingSsoButton).nullable().optional().meta({ deprecated: true }),
  external_action_message: z.string().nullable().optional(),
  website_error: z.string().nullable().optional().meta({ description: 'The error message of the site.' }),
  error_code: z.string().nullable().optional(),
  error_message: z.string().nullable().optional(),
  hosted_url: z.string().nullable().optional(),
  live_view_url: z.string().nullable().optional(),
}

export const ManagedAuth = z
  .object({
    id: z.string(),
    profile_name: z.string(),
    domain: z.string(),
    status: ConnectionStatus,
    last_auth_check_at: Timestamp.optional(),
    last_auth_at: Timestamp.optional().meta({ deprecated: true }),
    credential: CredentialReference.optional(),
    can_reauth: z.boolean(),
    can_reauth_reason: ReauthReason,
    proxy_id: z.string().optional().meta({ deprecated: true }),
    browser: ManagedAuthBrowserConfig,
    browser_telemetry: BrowserTelemetryRequestConfig.nullable().optional().meta({ deprecated: true }),
    allowed_domains: z.array(z.string()).optional(),
    login_url: z.string().optional(),
    post_login_url: z.string().optional().meta({ description: 'The page after the last login.' }),
    health_check_interval: z.int().nullable(),
    health_checks: z.boolean(),
    health_check_unavailable_reason: z
      .enum(['no_auth_check_url'])
      .optional()
      .meta({ description: 'Why there are no checks yet: no login has led to a page that a check could open.' }),
    auto_reauth: z.boolean(),
    save_credentials: z.boolean(),
    record_session: z.boolean(),
    flow_status: FlowStatus.nullable(),
    flow_step: FlowStep.nullable(),
    flow_expires_at: Timestamp.nullable().optional(),
    sso_provider: z.string().nullable().optional(),
    browser_session_id: z.string().nullable().optional(),
    ...flowState,
  })
  .meta({ id: 'ManagedAuth', description: 'The flow fields describe the newest flow, also after its end.' })
export type ManagedAuth = z.infer<typeof ManagedAuth>

const notNull = <Schema extends z.ZodType>(schema: z.ZodOptional<z.ZodNullable<Schema>>) => schema.unwrap().unwrap()

const StateEvent = z
  .object({
    event: z.literal('managed_auth_state'),
    timestamp: Timestamp,
    flow_status: FlowStatus,
    flow_step: FlowStep,
    flow_type: FlowType.optional(),
    interaction_id: z.string().optional(),
    fields: notNull(flowState.fields).optional(),
    choices: notNull(flowState.choices).optional(),
    discovered_fields: z.array(DiscoveredField).optional(),
    mfa_options: z.array(MfaOption).optional(),
    sign_in_options: z.array(SignInOption).optional(),
    pending_sso_buttons: z.array(PendingSsoButton).optional(),
    external_action_message: z.string().optional(),
    website_error: z.string().optional(),
    error_code: z.string().optional(),
    error_message: z.string().optional(),
    hosted_url: z.string().optional(),
    live_view_url: z.string().optional(),
    post_login_url: z.string().optional(),
  })
  .meta({ id: 'ManagedAuthStateEvent' })
export type StateEvent = z.infer<typeof StateEvent>

export const ConnectionEvent = z
  .discriminatedUnion('event', [StateEvent, z.object({ event: z.literal('sse_heartbeat'), timestamp: Timestamp })])
  .meta({ id: 'ManagedAuthEvent' })
export type ConnectionEvent = z.infer<typeof ConnectionEvent>

export const TimelineType = z.enum(['login', 'reauth', 'health_check'])
export type TimelineType = z.infer<typeof TimelineType>

export const TimelineEvent = z
  .object({
    type: TimelineType,
    id: z.string(),
    timestamp: Timestamp.meta({ description: 'The start time.' }),
    status: z.enum([...FlowStatus.options, ...ConnectionStatus.options]),
    previous_status: ConnectionStatus.optional().meta({ description: 'Set for a check: the status before it.' }),
    step: z.enum(['INITIALIZED', ...FlowStep.options, 'AWAITING_HUMAN_INTERVENTION', 'EXPIRED']).optional(),
    error_code: z.string().optional(),
    error_message: z.string().optional(),
    website_error: z.string().optional(),
    browser_session_id: z.string().optional(),
    replay_id: z.string().optional(),
    telemetry_captured: z.boolean().optional(),
    updated_at: Timestamp.optional(),
    completed_at: Timestamp.optional(),
  })
  .meta({ id: 'ManagedAuthTimelineEvent' })
export type TimelineEvent = z.infer<typeof TimelineEvent>

export const LoginResponse = z
  .object({
    id: z.string().meta({ description: 'The id of the connection.' }),
    flow_type: FlowType,
    hosted_url: z.string().meta({ description: 'A page where a person can finish the login. It opens once.' }),
    flow_expires_at: Timestamp,
    handoff_code: z.string().optional().meta({ description: 'The code in `hosted_url`, for a page of your own.' }),
    live_view_url: z.string().optional(),
  })
  .meta({ id: 'LoginResponse' })
export type LoginResponse = z.infer<typeof LoginResponse>
