import { Secret, TOTP } from 'otpauth'

export interface TotpSettings {
  readonly algorithm: 'SHA1' | 'SHA256' | 'SHA512'
  readonly digits: number
  /** In seconds. */
  readonly period: number
}

export const usualTotp: TotpSettings = { algorithm: 'SHA1', digits: 6, period: 30 }

export interface TotpCode {
  readonly code: string
  readonly expiresAt: Date
}

/** Returns the current code. `secret` is base32. */
export function totpCode(secret: string, settings: TotpSettings, now: Date): TotpCode {
  const totp = new TOTP({ ...settings, secret: Secret.fromBase32(secret) })
  const timestamp = now.getTime()
  return { code: totp.generate({ timestamp }), expiresAt: new Date(timestamp + totp.remaining({ timestamp })) }
}
