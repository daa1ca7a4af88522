import { z } from 'zod'

export const maxChromePolicyBytes = 5 * 1024 * 1024

/**
 * Policies that berth reserves for itself. With them a session could bypass its network (proxy) or lose its control
 * connection (developer tools, remote debugging) or its extensions. A trailing `*` matches every name with that prefix.
 */
const managedPolicies = [
  'Extension*',
  'BlockExternalExtensions',
  'Proxy*',
  'DeveloperTools*',
  'RemoteDebuggingAllowed',
  'WebRtcIPHandling',
  'WebRtcUdpPortRange',
  'QuicAllowed',
  'UserDataDir',
  'DiskCacheDir',
  'CommandLineFlagSecurityWarningsEnabled',
  'CloudManagement*',
  'BrowserSignin',
  'ForceBrowserSignin',
  'ChromeVariations',
  'HeadlessMode',
]

const managedPrefixes = managedPolicies.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))

/** Whether berth reserves the policy. */
export function isManagedPolicy(name: string): boolean {
  return managedPolicies.includes(name) || managedPrefixes.some((prefix) => name.startsWith(prefix))
}

/** Chrome enterprise policies by name, at most 5 MiB as JSON. */
export const ChromePolicy = z
  .record(z.string().regex(/^[A-Za-z][A-Za-z0-9]*$/, { error: 'must be the name of a Chrome policy' }), z.json())
  .superRefine((policy, context) => {
    for (const name of Object.keys(policy).filter(isManagedPolicy)) {
      context.addIssue({ code: 'custom', path: [name], message: 'is managed by berth and cannot be set' })
    }
    if (new TextEncoder().encode(JSON.stringify(policy)).length > maxChromePolicyBytes) {
      context.addIssue({ code: 'custom', message: `must not exceed ${maxChromePolicyBytes} bytes as JSON` })
    }
  })
  .meta({ override: { type: 'object', additionalProperties: true } })
