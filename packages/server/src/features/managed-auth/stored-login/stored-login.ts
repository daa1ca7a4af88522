import type { LoginField } from '@berth/contract/agent/login/login-page.ts'
import type { TotpCode } from '../../../secrets/totp.ts'

/** The stored values for the login of a connection. */
export interface StoredLogin {
  /** Identifies the credential and its version, so that a rejected one is not used again. */
  readonly version: string
  readonly values: ReadonlyMap<string, string>
  /** The service with which the credential logs in. */
  readonly ssoProvider: string | null
  /** Absent without a stored TOTP secret. */
  readonly totp: ((at: Date) => TotpCode) | undefined
}

const identifierKeys = ['username', 'user', 'login', 'user_name', 'userid', 'identifier', 'account']
const keysOf: Readonly<Partial<Record<LoginField['purpose'], readonly string[]>>> = {
  username: [...identifierKeys, 'email', 'phone'],
  email: ['email', 'e-mail', 'mail', ...identifierKeys],
  phone: ['phone', 'tel', 'mobile', 'phone_number', ...identifierKeys],
  password: ['password', 'pass', 'passwd'],
}

const codePurposes: readonly LoginField['purpose'][] = ['totp', 'sms_code', 'email_code', 'code', 'backup_code']

export function isCode({ purpose }: Pick<LoginField, 'purpose'>): boolean {
  return codePurposes.includes(purpose)
}

/** The stored value for a field: by the name under which it is stored, otherwise by the usual names of such fields. */
export function storedValue(storedLogin: StoredLogin, field: LoginField): string | undefined {
  if (isCode(field) || field.name === 'totp_secret') return undefined
  const exact = storedLogin.values.get(field.name)
  if (exact !== undefined) return exact
  const byKey = new Map([...storedLogin.values].map(([key, value]) => [key.toLowerCase(), value]))
  for (const key of [field.name.toLowerCase(), ...(keysOf[field.purpose] ?? [])]) {
    const value = byKey.get(key)
    if (value === undefined) continue
    // A value for an e-mail field must be an e-mail address.
    if (field.purpose === 'email' && identifierKeys.includes(key) && !value.includes('@')) continue
    return value
  }
  return undefined
}

/**
 * Whether the stored TOTP secret gives the code for this field. A page that does not name the kind of code may mean it.
 */
export function takesTotp(storedLogin: StoredLogin, { purpose }: Pick<LoginField, 'purpose'>): boolean {
  return storedLogin.totp !== undefined && (purpose === 'totp' || purpose === 'code')
}
