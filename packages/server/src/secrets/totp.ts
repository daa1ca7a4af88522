import { Secret, TOTP, URI } from 'otpauth'

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

/** The codes of a seed in base32, or of an `otpauth:` URI. Undefined when it is neither. */
export function readTotp(text: string): ((at: Date) => TotpCode) | undefined {
  try {
    const totp = text.startsWith('otpauth:')
      ? URI.parse(text)
      : new TOTP({ secret: Secret.fromBase32(plainBase32(text)) })
    if (!(totp instanceof TOTP)) return undefined
    const { algorithm, digits, period, secret } = totp
    const settings = { algorithm: algorithm as TotpSettings['algorithm'], digits, period }
    return (at) => totpCode(secret.base32, settings, at)
  } catch {
    return undefined
  }
}

function plainBase32(text: string): string {
  return text.replaceAll(/[\s=-]/g, '').toUpperCase()
}
