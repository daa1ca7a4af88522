import type { FlowStep, ManagedAuthBrowserConfig } from '@berth/contract/managed-auth/connection.ts'

/*
 * The states of a flow, as (status, step):
 *
 * DISCOVERING      the initial step: the browser starts, and the flow searches for the login page
 * AWAITING_INPUT   the page needs a value or a choice that is not stored; an answer continues the flow
 * AWAITING_EXTERNAL_ACTION  a person has to act elsewhere; a change of the page, or an answer to its fallback, continues it
 * SUBMITTING       something is being typed or pressed, or the page that follows is being observed
 * COMPLETED        has one of the other statuses, and is final
 *
 * Every change is one statement that requires the version, or the question, that the change is based on. So if an answer,
 * an expiry, a cancellation and a new page come together, one of them changes the flow, and the others find it changed.
 */

/** The permitted next steps while a flow is in progress. Every step may be followed by COMPLETED. */
export const nextSteps: Readonly<Record<FlowStep, readonly FlowStep[]>> = {
  DISCOVERING: ['DISCOVERING', 'AWAITING_INPUT', 'AWAITING_EXTERNAL_ACTION', 'SUBMITTING', 'COMPLETED'],
  AWAITING_INPUT: ['SUBMITTING', 'COMPLETED'],
  AWAITING_EXTERNAL_ACTION: ['AWAITING_EXTERNAL_ACTION', 'AWAITING_INPUT', 'SUBMITTING', 'COMPLETED'],
  SUBMITTING: ['SUBMITTING', 'AWAITING_INPUT', 'AWAITING_EXTERNAL_ACTION', 'COMPLETED'],
  COMPLETED: [],
}

export const flowMilliseconds = 20 * 60_000
export const inputMilliseconds = 10 * 60_000

/** Overrides of the connection's browser settings for one flow. */
export interface FlowOptions {
  readonly record: boolean
  readonly browser: ManagedAuthBrowserConfig
}

/** What a person had to do in a login because no stored value suffices. */
export type HumanNeed =
  | 'external_action'
  | 'totp'
  | 'sms_code'
  | 'email_code'
  | 'code'
  | 'account_choice'
  | 'mfa_choice'
  | 'customer_input'

/** Why a flow failed. The codes are part of the public API. */
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
