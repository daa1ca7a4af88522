import { z } from 'zod'
import { Timestamp } from '../common/time.ts'
import { Unchangeable } from '../common/unsupported.ts'
import { ProxyProtocol } from '../egress/egress-settings.ts'
import { parseHost } from '../egress/host.ts'
import { parseHostPattern } from '../egress/host-pattern.ts'
import { checkTargeting, targetingFields } from './targeting.ts'

export const managedProxyTypes = ['datacenter', 'isp', 'residential', 'mobile'] as const
export type ManagedProxyType = (typeof managedProxyTypes)[number]

export const ProxyType = z.enum([...managedProxyTypes, 'custom'])
export type ProxyType = z.infer<typeof ProxyType>

const maxBypassHosts = 100
const maxHostLength = 253
const minPasswordLength = 5
const maxCredentialBytes = 255
const maxCaBundleBytes = 64 * 1024

export const ProxyName = z
  .string()
  .transform((name) => name.trim())
  .refine((name) => name.length >= 1 && [...name].length <= 255, { error: 'must have 1 to 255 characters' })
  .meta({ override: { type: 'string', minLength: 1, maxLength: 255 } })

/** Control characters would end a header, and SOCKS5 encodes lengths in one byte. */
const Credential = z
  .string()
  .refine((text) => !/\p{Cc}/u.test(text), { error: 'must have no control characters' })
  .refine((text) => bytes(text) <= maxCredentialBytes, { error: `must have at most ${maxCredentialBytes} bytes` })

const BypassHost = z
  .string()
  .max(maxHostLength)
  .refine((text) => parseHostPattern(text.trim()) !== undefined, {
    error: 'must be a host name, or one with a leading "*.", without scheme, port or path, and no address',
  })

const hostRule = 'must be a host name or an address, without scheme, port or path'

/** The fields of all types. A check below rejects fields that the chosen type does not accept. */
const ProxyConfigRequest = z
  .object({
    host: z
      .string()
      .max(maxHostLength)
      .refine((text) => parseHost(text) !== undefined || parseHost(`[${text}]`) !== undefined, { error: hostRule })
      .optional(),
    port: z.int().min(1).max(65_535).optional(),
    username: Credential.optional(),
    password: Credential.min(minPasswordLength).optional(),
    ca_bundle: z
      .string()
      .refine((text) => bytes(text) <= maxCaBundleBytes, { error: `must have at most ${maxCaBundleBytes} bytes` })
      .optional()
      .meta({ description: 'One or more CA certificates, PEM.' }),
    ...targetingFields,
  })
  .meta({ id: 'ProxyConfigRequest' })
export type ProxyConfigRequest = z.infer<typeof ProxyConfigRequest>

const customFields = ['host', 'port', 'username', 'password', 'ca_bundle'] as const
const targetingOf: Readonly<Record<ProxyType, readonly (keyof typeof targetingFields)[]>> = {
  datacenter: ['country'],
  isp: ['country'],
  residential: ['country', 'city', 'state', 'zip', 'asn', 'os'],
  mobile: ['country', 'city', 'state'],
  custom: [],
}

export const ProxyCreateRequest = z
  .object({
    type: ProxyType,
    name: ProxyName.optional(),
    protocol: ProxyProtocol.default('https').meta({ description: 'The protocol between berth and the proxy.' }),
    bypass_hosts: z.array(BypassHost).max(maxBypassHosts).optional(),
    config: ProxyConfigRequest.optional(),
  })
  .superRefine(({ type, protocol, config = {} }, context) => {
    const refuse = (field: string, message: string) => {
      context.addIssue({ code: 'custom', path: ['config', field], message })
    }
    const taken: readonly string[] = type === 'custom' ? customFields : targetingOf[type]
    for (const field of Object.keys(config)) if (!taken.includes(field)) refuse(field, `is not for ${type} proxies`)
    if (type !== 'custom') return checkTargeting(type, config, refuse)
    for (const field of ['host', 'port'] as const)
      if (config[field] === undefined) refuse(field, 'is needed for custom proxies')
    if (protocol !== 'socks5' && config.username?.includes(':'))
      refuse('username', `must have no colon: an ${protocol} proxy could not tell it from the password`)
  })
  .meta({ id: 'ProxyCreateRequest' })
export type ProxyCreateRequest = z.infer<typeof ProxyCreateRequest>

export const ProxyUpdateRequest = z
  .object({
    name: ProxyName,
    type: Unchangeable,
    protocol: Unchangeable,
    bypass_hosts: Unchangeable,
    config: Unchangeable,
  })
  .meta({ id: 'ProxyUpdateRequest' })

const ProxyConfig = z
  .object({
    host: z.string().optional(),
    port: z.int().optional(),
    username: z.string().optional(),
    has_password: z.boolean().optional(),
    has_ca_bundle: z.boolean().optional(),
    ...targetingFields,
  })
  .meta({ id: 'ProxyConfig' })

/** A proxy in the form that callers see. */
export const ProxyRecord = z
  .object({
    id: z.string(),
    type: ProxyType,
    name: z.string().optional(),
    protocol: ProxyProtocol,
    bypass_hosts: z.array(z.string()),
    config: ProxyConfig,
    status: z.enum(['available', 'unavailable']).optional(),
    last_checked: Timestamp.optional(),
    ip_address: z.string().optional(),
  })
  .meta({ id: 'Proxy' })
export type ProxyRecord = z.infer<typeof ProxyRecord>

export const CheckedProxy = ProxyRecord.extend({
  latency_ms: z.int().optional().meta({ description: 'Time until the response, including the connection.' }),
}).meta({ id: 'CheckedProxy' })
export type CheckedProxy = z.infer<typeof CheckedProxy>

function bytes(text: string): number {
  return new TextEncoder().encode(text).length
}
