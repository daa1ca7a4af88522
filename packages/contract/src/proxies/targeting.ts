import { z } from 'zod'

/** The location of a managed proxy. */
export const targetingFields = {
  country: z
    .string()
    .transform((country) => country.toUpperCase())
    .refine(isCountry, { error: 'must be an ISO 3166 code of two letters' })
    .meta({ override: { type: 'string' } })
    .optional(),
  city: z
    .string()
    .max(100)
    .regex(/^[^\s\p{Lu}]+$/u, { error: 'must be in lower case and without spaces' })
    .optional(),
  state: z
    .string()
    .regex(/^[A-Za-z]{2}$/, { error: 'must have two letters' })
    .transform((state) => state.toUpperCase())
    .meta({ override: { type: 'string' } })
    .optional(),
  zip: z
    .string()
    .regex(/^\d{5}$/, { error: 'must have five digits' })
    .optional(),
  asn: z
    .string()
    .regex(/^AS\d{1,10}$/i, { error: 'must be written as AS15169' })
    .transform((asn) => asn.toUpperCase())
    .meta({ override: { type: 'string' } })
    .optional(),
  os: z.enum(['windows', 'macos', 'android']).optional().meta({ deprecated: true, description: 'Has no effect.' }),
}

export type Targeting = { readonly [Field in keyof typeof targetingFields]?: string | undefined }

const europeanUnion = 'EU'
const ispCountries = ['US', 'GB', 'FR', 'DE', 'SG']
/** Region codes that have a name but are not countries. */
const noCountries = ['EZ', 'QO', 'UN', 'XA', 'XB', 'ZZ']
const regionNames = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' })

/** Checks the rules between fields, and those of a single type. */
export function checkTargeting(
  type: 'datacenter' | 'isp' | 'residential' | 'mobile',
  { country, city, state, zip, asn }: Targeting,
  refuse: (field: string, rule: string) => void,
): void {
  if (country === europeanUnion && type !== 'datacenter') refuse('country', 'EU is for datacenter proxies only')
  if (type === 'isp' && country !== undefined && !ispCountries.includes(country))
    refuse('country', `is one of ${ispCountries.join(', ')} for isp proxies`)
  const target = Object.entries({ city, state, zip, asn }).find(([, value]) => value !== undefined)?.[0]
  if (target !== undefined && country === undefined) refuse('country', `is needed with ${target}`)
  for (const [field, value] of Object.entries({ state, zip })) {
    if (value !== undefined && country !== undefined && country !== 'US') refuse(field, 'is for the country US only')
  }
  for (const [field, value] of Object.entries({ zip, asn })) {
    if (value !== undefined && (city !== undefined || state !== undefined))
      refuse(field, 'cannot be combined with city or state')
  }
}

function isCountry(code: string): boolean {
  if (!/^[A-Z]{2}$/.test(code) || noCountries.includes(code)) return false
  return code === europeanUnion || regionNames.of(code) !== undefined
}
