import type { ListName } from '@berth/contract/dashboard/dashboard-endpoints.ts'

/** The beginning of the keys of all queries that show this list: they are read again when it changes. */
export function listKey(list: ListName): readonly string[] {
  return ['list', list]
}
