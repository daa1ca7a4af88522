import type { FlowStep, ManagedAuthBrowserConfig } from '@berth/contract/managed-auth/connection.ts'

/*
 * The states of a flow, as (status, step):
 *
 * DISCOVERING      begins here; its browser starts, and the login page is looked for
 * AWAITING_INPUT   the page needs what nothing stored can give; an answer leads on
 * AWAITING_EXTERNAL_ACTION  a person has to act elsewhere; what becomes of the page leads on, or an answer to its fallback
 * SUBMITTING       something is typed or pressed, or the page that follows is read
 * COMPLETED        with one of the other statuses; nothing leads on
 *
 * Every change is one statement that finds the flow in the version, or with the question, that the change is based on. So
 * of an answer, an expiry, a cancel and a page that come at once, one changes the flow and the others find it changed.
 */

/** Which steps follow which while a flow is in progress. Every step may be followed by COMPLETED. */
export const nextSteps: Readonly<Record<FlowStep, readonly FlowStep[]>> = {
  DISCOVERING: ['DISCOVERING', 'AWAITING_INPUT', 'AWAITING_EXTERNAL_ACTION', 'SUBMITTING', 'COMPLETED'],
  AWAITING_INPUT: ['SUBMITTING', 'COMPLETED'],
  AWAITING_EXTERNAL_ACTION: ['AWAITING_EXTERNAL_ACTION', 'AWAITING_INPUT', 'SUBMITTING', 'COMPLETED'],
  SUBMITTING: ['SUBMITTING', 'AWAITING_INPUT', 'AWAITING_EXTERNAL_ACTION', 'COMPLETED'],
  COMPLETED: [],
}

export const flowMilliseconds = 20 * 60_000
export const inputMilliseconds = 10 * 60_000

/** What the browser of a flow has otherwise than its connection says. */
export interface FlowOptions {
  readonly record: boolean
  readonly browser: ManagedAuthBrowserConfig
}

/** What a person had to do in a login, that nothing stored can do. */
export type HumanNeed =
  | 'external_action'
  | 'totp'
  | 'sms_code'
  | 'email_code'
  | 'code'
  | 'account_choice'
  | 'mfa_choice'
  | 'customer_input'

/** Why a flow has failed. The codes are those of the documented API. */
export type FlowErrorCode =
  | 'login_form_not_found'
  | 'navigation_confused'
  | 'domain_not_allowed'
  | 'element_not_found'
  | 'stuck_in_loop'
  | 'max_steps_exceeded'
  | 'website_error'
  | 'network_error'
  | 'bot_detected'
  | 'captcha_blocked'
  | 'session_expired'
  | 'rate_limited'
  | 'account_locked'
  | 'credentials_invalid'
  | 'mfa_required'
  | 'external_action_required'
  | 'unsupported_auth_method'
  | 'totp_code_rejected'
  | 'totp_required'
  | 'sms_code_required'
  | 'email_code_required'
  | 'account_choice_required'
  | 'customer_input_required'
  | 'awaiting_input_timeout'
  | 'external_action_timeout'
  | 'browser_error'
  | 'internal_error'

export interface FlowFailure {
  readonly code: FlowErrorCode
  readonly message: string
  readonly websiteError?: string | undefined
}
