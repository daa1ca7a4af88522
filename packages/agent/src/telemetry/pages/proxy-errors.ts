/** The header with the reason when egress itself responds to a plain HTTP request. */
export const proxyErrorHeader = 'x-kernel-proxy-error'

const proxyErrorCodes: ReadonlySet<string> = new Set([
  'destination_blocked',
  'destination_route_unavailable',
  'network_policy_denied',
  'provider_blacklisted',
  'provider_unreachable',
  'provider_rejected',
  'origin_tls_timeout',
  'origin_response_incomplete',
  'proxy_unavailable',
  'restricted_route_unavailable',
  'upstream_timeout',
  'upstream_dns_failure',
  'upstream_connect_failed',
  'unknown',
])

export function isProxyErrorCode(code: string): boolean {
  return proxyErrorCodes.has(code)
}
