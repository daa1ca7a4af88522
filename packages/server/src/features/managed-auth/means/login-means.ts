import type { LoginField } from '@berth/contract/agent/login/login-page.ts'
import type { TotpCode } from '../../../secrets/totp.ts'

/** What is stored for the login of a connection. */
export interface LoginMeans {
  /** Which credential in which version it is, as the site may refuse it. */
  readonly version: string
  readonly values: ReadonlyMap<string, string>
  /** The service that the credential logs in with. */
  readonly ssoProvider: string | null
  /** Absent where no secret for codes is stored. */
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

/** The stored value for a field: by the name under which such a value is kept, else by what fields like it are called. */
export function storedValue(means: LoginMeans, field: LoginField): string | undefined {
  if (isCode(field) || field.name === 'totp_secret') return undefined
  const exact = means.values.get(field.name)
  if (exact !== undefined) return exact
  const byKey = new Map([...means.values].map(([key, value]) => [key.toLowerCase(), value]))
  for (const key of [field.name.toLowerCase(), ...(keysOf[field.purpose] ?? [])]) {
    const value = byKey.get(key)
    if (value === undefined) continue
    // What the page calls an e-mail address is one.
    if (field.purpose === 'email' && identifierKeys.includes(key) && !value.includes('@')) continue
    return value
  }
  return undefined
}

/** Whether a code for this field comes from the stored secret. A page that does not say which kind it wants may mean it. */
export function takesTotp(means: LoginMeans, { purpose }: Pick<LoginField, 'purpose'>): boolean {
  return means.totp !== undefined && (purpose === 'totp' || purpose === 'code')
}
