import { listApps } from '@berth/contract/apps/app-endpoints.ts'
import { getAuthContext } from '@berth/contract/auth/auth-endpoints.ts'
import { getBrowserPool, listBrowserPools } from '@berth/contract/browser-pools/browser-pool-endpoints.ts'
import { getBrowser, listBrowsers } from '@berth/contract/browsers/browser-endpoints.ts'
import { getProfile, listProfiles } from '@berth/contract/profiles/profile-endpoints.ts'
import { type Api, ApiError } from './api.ts'
import { ProtocolError } from './protocol-error.ts'
import { at } from './tool.ts'

interface Kind {
  readonly list: unknown
  readonly get: unknown
  readonly item: string
}

const kinds: Readonly<Record<string, Kind>> = {
  browsers: { list: listBrowsers, get: getBrowser, item: 'sessionId' },
  'browser-pools': { list: listBrowserPools, get: getBrowserPool, item: 'idOrName' },
  profiles: { list: listProfiles, get: getProfile, item: 'profileName' },
  apps: { list: listApps, get: undefined, item: 'appName' },
}

const root = 'kernel://orgs/{organizationId}/projects/{projectId}'

export const resourceTemplates = Object.entries(kinds).flatMap(([kind, { item }]) => [
  {
    name: kind,
    uriTemplate: `${root}/${kind}`,
    mimeType: 'application/json',
    description: `The ${kind} of a project.`,
  },
  {
    name: `${kind}-item`,
    uriTemplate: `${root}/${kind}/{${item}}`,
    mimeType: 'application/json',
    description: `One of the ${kind} of a project.`,
  },
])

/** The JSON of a resource, or a note if a collection is empty. */
export async function readResource(uri: string, api: Api, pin: string | undefined) {
  try {
    return await read(uri, api, pin)
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) throw new ProtocolError('resourceNotFound', error.message)
    throw error
  }
}

async function read(uri: string, api: Api, pin: string | undefined) {
  const [, organization, project, kind = '', name] =
    /^kernel:\/\/orgs\/([^/]+)\/projects\/([^/]+)\/([a-z-]+)(?:\/([^/]+))?$/.exec(uri) ?? []
  const found = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
  if (!found || !organization || !project) throw new ProtocolError('resourceNotFound', `there is no resource ${uri}`)
  const context = await api.call<{ organization: { id: string } }>(at(getAuthContext))
  if (context.organization.id !== organization)
    throw new ProtocolError('resourceNotFound', 'the organization is not that of this connection')
  if (pin !== undefined && pin !== project)
    throw new ProtocolError('resourceNotFound', 'the project is not that of this connection')
  const own = api.inProject(project)
  if (name === undefined) {
    const { items } = await own.list(at(found.list), { query: { limit: 100 } })
    return items.length > 0 ? json(uri, items) : { uri, mimeType: 'text/plain', text: `There are no ${kind}.` }
  }
  const item = decoded(name)
  if (item === undefined) throw new ProtocolError('resourceNotFound', `there is no resource ${uri}`)
  if (found.get) return json(uri, await own.call(at(found.get), { params: { id_or_name: item } }))
  const { items } = await own.list(at(found.list), { query: { app_name: item } })
  if (items.length === 0) throw new ProtocolError('resourceNotFound', `there is no app ${item}`)
  return json(uri, items)
}

/** Undefined if the encoding is invalid. */
function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

function json(uri: string, value: unknown) {
  return { uri, mimeType: 'application/json', text: JSON.stringify(value, null, 2) }
}
