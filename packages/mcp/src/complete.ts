import { getAuthContext } from '@berth/contract/auth/auth-endpoints.ts'
import { listProjects } from '@berth/contract/projects/project-endpoints.ts'
import type { CompleteRequest } from '@modelcontextprotocol/sdk/types.js'
import type { Api } from './api.ts'
import { conceptNames } from './prompts.ts'
import { at } from './tool.ts'

const maxValues = 100

/** Completions for an argument of a prompt, or for a part of a resource URI. */
export async function complete(
  ref: CompleteRequest['params']['ref'],
  { name, value }: CompleteRequest['params']['argument'],
  api: Api,
) {
  const values = await valuesOf(ref.type === 'ref/prompt' ? `${ref.name} ${name}` : name, api)
  const fitting = values.filter((each) => each.startsWith(value))
  return { values: fitting.slice(0, maxValues), total: fitting.length, hasMore: fitting.length > maxValues }
}

async function valuesOf(argument: string, api: Api): Promise<readonly string[]> {
  if (argument === 'kernel-concepts concept') return conceptNames
  if (argument === 'organizationId') {
    return [(await api.call<{ organization: { id: string } }>(at(getAuthContext))).organization.id]
  }
  if (argument !== 'projectId') return []
  const { items } = await api.list(at(listProjects), { query: { limit: maxValues } })
  return (items as readonly { id: string }[]).map(({ id }) => id)
}
