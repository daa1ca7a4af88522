import type { SessionId } from '@berth/contract/common/ids.ts'

/** Everything of one session lives below this path, so that a load balancer can route by it. */
export const sessionRoot = '/s'

/** The addresses of a session; the token stands in the query, where the official clients look for it. */
export function sessionUrls(publicUrl: string, id: SessionId, token: string) {
  const baseUrl = `${publicUrl}${sessionRoot}/${id}`
  const websocketBase = baseUrl.replace(/^http/, 'ws')
  return {
    cdp_ws_url: `${websocketBase}/cdp?jwt=${token}`,
    webdriver_ws_url: `${websocketBase}/webdriver?jwt=${token}`,
    base_url: baseUrl,
  }
}
