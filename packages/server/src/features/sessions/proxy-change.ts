import type { BrowserProxyConfig } from '@berth/contract/browsers/proxy-selection.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { SelectedProxy } from '../../database/tables.ts'
import type { ProxyService, SelectableProxy } from '../proxies/proxy-service.ts'
import type { PlanChange } from './session-change.ts'
import type { SessionEgress } from './session-egress.ts'

/** The new way to select a proxy, and the two old ones. */
export interface ProxySelection {
  readonly proxy?: BrowserProxyConfig | undefined
  readonly proxy_id?: string | null | undefined
  readonly disable_default_proxy?: boolean | undefined
}

type Select = (
  target: { readonly id?: string | undefined; readonly name?: string | undefined },
  field: string,
) => Promise<SelectableProxy>

/** What the fields select; nothing when they leave it as it is. */
export async function selectProxy(
  { proxy, proxy_id, disable_default_proxy }: ProxySelection,
  current: SelectedProxy,
  select: Select,
): Promise<SelectedProxy | undefined> {
  if (proxy?.mode) return { mode: proxy.mode }
  if (proxy) return { id: (await select(proxy, 'proxy')).id }
  if (proxy_id) return { id: (await select({ id: proxy_id }, 'proxy_id')).id }
  if (disable_default_proxy) return { mode: 'direct' }
  const isReset = disable_default_proxy === false && 'mode' in current && current.mode === 'direct'
  return proxy_id === '' || isReset ? { mode: 'default' } : undefined
}

interface ProxyChangeOptions {
  readonly proxies: ProxyService
  readonly egress: SessionEgress
  /** Makes a session what its row says, when nothing else changes it. */
  readonly restore: (id: SessionId) => Promise<void>
}

/** The part of an update that lets a session leave by another proxy, without a word to its browser. */
export function planProxyChange({ proxies, egress, restore }: ProxyChangeOptions): PlanChange {
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
    if (!selected || isSame(selected, current)) return undefined
    return {
      columns: { proxy: JSON.stringify(selected) },
      apply: () => egress.change(session, selected),
      revert: () => egress.change(session, current),
      afterwards: () => {
        // Of one that was deleted before the row said that the session uses it, nobody has told the session.
        if ('id' in selected) void proxies.get(projectId, selected.id).catch(() => restore(sessionId))
      },
    }
  }
}

function isSame(one: SelectedProxy, other: SelectedProxy): boolean {
  return 'id' in one ? 'id' in other && one.id === other.id : 'mode' in other && one.mode === other.mode
}
