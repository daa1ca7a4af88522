import type { BrowserUpdateRequest } from '@berth/contract/browsers/browser-update.ts'
import { BrowserNetworkConfig, mayStartAt } from '@berth/contract/browsers/network-config.ts'
import type { BrowserProxyConfig } from '@berth/contract/browsers/proxy-selection.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { SelectedProxy, SessionNetwork } from '../../../database/tables.ts'
import type { ProxyService, SelectProxy } from '../../proxies/proxy-service.ts'
import { selectAllowedHosts } from '../create/network-selection.ts'
import type { SessionEgress } from '../machines/session-egress.ts'
import type { PlanChange } from './session-change.ts'

/** The field `proxy` and the two deprecated ones. */
export interface ProxySelection {
  readonly proxy?: BrowserProxyConfig | undefined
  readonly proxy_id?: string | null | undefined
  readonly disable_default_proxy?: boolean | undefined
}

/** The proxy that the fields select. Undefined if they do not change it. */
export async function selectProxy(
  { proxy, proxy_id, disable_default_proxy }: ProxySelection,
  current: SelectedProxy,
  select: SelectProxy,
): Promise<SelectedProxy | undefined> {
  if (proxy?.mode) return { mode: proxy.mode }
  if (proxy) return { id: (await select(proxy, 'proxy')).id }
  if (proxy_id) return { id: (await select({ id: proxy_id }, 'proxy_id')).id }
  if (disable_default_proxy) return { mode: 'direct' }
  const isReset = disable_default_proxy === false && 'mode' in current && current.mode === 'direct'
  return proxy_id === '' || isReset ? { mode: 'default' } : undefined
}

interface EgressChangeOptions {
  readonly proxies: ProxyService
  readonly egress: SessionEgress
  /** Applies the session's row to its egress settings, serialised with updates. */
  readonly restore: (id: SessionId) => Promise<void>
}

/** The part of an update that changes the proxy or the permitted hosts of a session. The browser is not involved. */
export function planEgressChange({ proxies, egress, restore }: EgressChangeOptions): PlanChange {
  return async (session, update) => {
    const { id: sessionId, project_id: projectId, proxy: current } = session
    const selected = await selectProxy(update, current, async (target, field) => {
      const proxy = await proxies.select(projectId, target, field)
      if (proxy.hasCaBundle && !isSame(proxy, current)) {
        const reason = 'a proxy with a CA bundle can only be selected when a session is created.'
        throw new BerthError('field_not_supported', { field, reason })
      }
      return proxy
    })
    const proxy = selected && !isSame(selected, current) ? selected : undefined
    const network = changedNetwork(session.network, update)
    if (!proxy && network === undefined) return undefined
    const changed = { ...(proxy && { proxy }), ...(network !== undefined && { network }) }
    return {
      columns: {
        ...(proxy && { proxy: JSON.stringify(proxy) }),
        ...(network !== undefined && { network: network && JSON.stringify(network) }),
      },
      apply: () => egress.change(session, changed),
      revert: () => egress.change(session, {}),
      afterwards: () => {
        // If the proxy was deleted before the row of the session was written, the delete did not update this session.
        if (proxy && 'id' in proxy) void proxies.get(projectId, proxy.id).catch(() => restore(sessionId))
      },
    }
  }
}

/** The network settings with the new permitted hosts. Undefined if they do not change. */
function changedNetwork(
  current: SessionNetwork | null,
  { network, start_url }: Pick<BrowserUpdateRequest, 'network' | 'start_url'>,
): SessionNetwork | null | undefined {
  const { allowed_hosts: before, ...others } = current ?? {}
  const wanted = network?.allowed_hosts
  const after = wanted === undefined ? before : (wanted && selectAllowedHosts(wanted)) || undefined
  if (wanted && !before) {
    const reason = 'can only be changed in a session that was created with allowed hosts.'
    throw new BerthError('field_not_supported', { field: 'network.allowed_hosts', reason })
  }
  if (after) refuseOverlaps(after, others.private_hosts ?? [])
  if (after && !mayStartAt(start_url ?? null, { ...others, allowed_hosts: after }))
    throw new BerthError('invalid_input', { reason: 'start_url: must be allowed by network.allowed_hosts.' })
  if (wanted === undefined || before === after) return undefined
  const changed: SessionNetwork = { ...others, ...(after && { allowed_hosts: after }) }
  return Object.keys(changed).length === 0 ? null : changed
}

function refuseOverlaps(allowedHosts: readonly string[], privateHosts: readonly string[]): void {
  const { error } = BrowserNetworkConfig.safeParse({ allowed_hosts: allowedHosts, private_hosts: privateHosts })
  const [issue] = error?.issues ?? []
  if (issue) throw new BerthError('invalid_input', { reason: `network.${issue.path.join('.')}: ${issue.message}.` })
}

function isSame(one: SelectedProxy, other: SelectedProxy): boolean {
  return 'id' in one ? 'id' in other && one.id === other.id : 'mode' in other && one.mode === other.mode
}
