import type { ProxyRecord } from '@berth/contract/proxies/proxy.ts'
import type { StoredProxy } from './proxy.ts'

/** Formats a proxy for callers. */
export function writeProxy(proxy: StoredProxy): ProxyRecord {
  return {
    id: proxy.id,
    type: proxy.type,
    ...(proxy.name !== null && { name: proxy.name }),
    protocol: proxy.protocol,
    bypass_hosts: [...proxy.bypass_hosts],
    config: proxy.config as ProxyRecord['config'],
    ...(proxy.status !== null && { status: proxy.status }),
    ...(proxy.last_checked && { last_checked: proxy.last_checked.toISOString() }),
    ...(proxy.ip_address !== null && { ip_address: proxy.ip_address }),
  }
}
