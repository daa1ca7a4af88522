import { BerthError } from '@berth/contract/errors.ts'
import {
  deleteVaultItem,
  getVaultItem,
  listVaultItemEvents,
  listVaultItems,
  performVaultItemOperation,
  updateVaultItem,
  upsertVaultItem,
} from '@berth/contract/vaults/item-endpoints.ts'
import type { Caller } from '../../../access/caller.ts'
import type { MountForCallers } from '../../../access/mount-for-callers.ts'
import { publicUrlOf } from '../../../access/public-url.ts'
import type { FillOperation } from '../operations/fill-operation.ts'
import type { WebMcpOperation } from '../operations/webmcp-operation.ts'
import { eventRecord, itemRecord, listedItem } from './item-record.ts'
import type { ItemService } from './item-service.ts'

interface ItemRoutesOptions {
  readonly vaultItems: ItemService
  readonly vaultFills: FillOperation
  readonly vaultTools: WebMcpOperation
  readonly publicUrl: string | undefined
}

export function mountItemRoutes(mount: MountForCallers, options: ItemRoutesOptions): void {
  const { vaultItems: items, vaultFills, vaultTools, publicUrl } = options
  const named = ({ projectId }: Caller, params: { readonly id_or_name: string; readonly key: string }) => ({
    projectId,
    vault: params.id_or_name,
    key: params.key,
  })

  mount(upsertVaultItem, async ({ caller, params, body, request }) =>
    itemRecord(await items.upsert(named(caller, params), body), publicUrlOf(request.raw, publicUrl)),
  )

  mount(listVaultItems, async ({ caller, params, request }) => {
    const list = await items.list(caller.projectId, params.id_or_name)
    return list.map((item) => listedItem(item, publicUrlOf(request.raw, publicUrl)))
  })

  mount(getVaultItem, async ({ caller, params, query, request, signal }) => {
    const [expansion] = query.expand ?? []
    const wait = expansion === undefined ? { seconds: query.wait, signal } : undefined
    const item = await items.get(named(caller, params), wait)
    if (expansion !== undefined) throw new BerthError('expansion_not_available', { expansion })
    return itemRecord(item, publicUrlOf(request.raw, publicUrl))
  })

  mount(updateVaultItem, async ({ caller, params, body, request }) =>
    itemRecord(await items.update(named(caller, params), body), publicUrlOf(request.raw, publicUrl)),
  )

  mount(deleteVaultItem, ({ caller, params }) => items.delete(named(caller, params)))

  mount(listVaultItemEvents, async ({ caller, params, query, signal }) => {
    const events = await items.listEvents(named(caller, params), query.after, { seconds: query.wait, signal })
    return events.map(eventRecord)
  })

  mount(performVaultItemOperation, async ({ caller, params, body, request, signal }) => {
    const item = named(caller, params)
    switch (body.type) {
      case 'collect':
        return itemRecord(await items.requestCollection(item), publicUrlOf(request.raw, publicUrl))
      case 'fill':
        return vaultFills.perform(item, body, signal)
      case 'webmcp_invoke':
        return vaultTools.perform(item, body, signal)
      default:
        await items.get(item)
        throw new BerthError('vault_operation_not_available', { type: body.type })
    }
  })
}
