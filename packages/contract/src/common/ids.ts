import { z } from 'zod'

/**
 * Ids are 24 characters, `^[a-z][a-z0-9]{23}$`: three letters for the kind, eight for the time, thirteen random ones.
 * Official clients tell an id from a name by that pattern, so the prefix carries no underscore.
 */
export const idPattern = /^[a-z][a-z0-9]{23}$/

export type SessionId = string & { readonly idOf: 'session' }
export type ProjectId = string & { readonly idOf: 'project' }
export type OrganizationId = string & { readonly idOf: 'organization' }
export type ExtensionId = string & { readonly idOf: 'extension' }
export type ProfileId = string & { readonly idOf: 'profile' }
export type ApiKeyId = string & { readonly idOf: 'api-key' }
export type ProxyId = string & { readonly idOf: 'proxy' }

const idPrefixes = {
  session: 'brw',
  project: 'prj',
  organization: 'org',
  'api-key': 'key',
  profile: 'prf',
  extension: 'ext',
  proxy: 'prx',
} as const
type IdKind = keyof typeof idPrefixes

const timeDigits = 8 // Milliseconds in base 36 stay at eight digits until the year 2059.
const randomDigits = 13 // 67 bits.

/** A new id of the kind; ids sort by the time they were made. */
export function newId<Kind extends IdKind>(kind: Kind, now: Date): string & { readonly idOf: Kind } {
  const time = now.getTime().toString(36).padStart(timeDigits, '0')
  const random = Array.from({ length: randomDigits }, randomBase36Digit).join('')
  return `${idPrefixes[kind]}${time}${random}` as string & { readonly idOf: Kind }
}

function randomBase36Digit(): string {
  for (;;) {
    const byte = crypto.getRandomValues(new Uint8Array(1))[0] ?? 255
    // 252 is the largest multiple of 36 in a byte: larger values would make some digits likelier than others.
    if (byte < 252) return (byte % 36).toString(36)
  }
}

/** A path parameter that takes an id or a name; ids are looked up first. */
export const IdOrName = z.string().min(1).max(255).meta({ description: 'Session id or name.' })
