import type { ListName } from '@berth/contract/dashboard/dashboard-endpoints.ts'

/** The key prefix of all queries that show this list: they are invalidated when it changes. */
export function listKey(list: ListName): readonly string[] {
  return ['list', list]
}
