/** The fields of a connection that the page shows. */
export interface LoginState {
  readonly domain: string
  readonly profile_name: string
  readonly flow_status: string | null
  readonly flow_step: string | null
  readonly interaction_id?: string | null
  readonly fields?: readonly LoginField[] | null
  readonly choices?: readonly LoginChoice[] | null
  readonly external_action_message?: string | null
  readonly website_error?: string | null
  readonly error_code?: string | null
  readonly error_message?: string | null
  readonly live_view_url?: string | null
}

export interface LoginField {
  readonly id: string
  readonly type: string
  readonly reason: string
  readonly label?: string
  readonly required?: boolean
  readonly hint?: string
  readonly input_mode?: string
}

export interface LoginChoice {
  readonly id: string
  readonly label: string
  readonly type: string
  readonly description?: string | null
  readonly masked_destination?: string | null
  readonly mfa_type?: string | null
}

/** The server does not know the login of this page, or does not know it any more. */
export class LoginIsOver extends Error {}

/** The server rejects the input for a reason that a person can read. */
export class Refusal extends Error {}
