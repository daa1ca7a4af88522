import type { IncomingHttpHeaders } from 'node:http'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { checkText } from '@berth/runtime/http/json-body.ts'
import type { KeyScope, OrganizationStore, ProjectSelector } from '../features/organizations/organization-store.ts'
import type { ApiKeyCache } from './api-key-cache.ts'
import type { Caller, OrganizationCaller } from './caller.ts'
import { OAuthTokens } from './oauth/oauth-tokens.ts'
import { hashApiKey } from './secrets.ts'
import { readBearer } from './session-credentials.ts'

const keyHeader = 'Send the header Authorization: Bearer <API key>.'

export interface Credentials {
  readonly keys: ApiKeyCache
  readonly organizations: OrganizationStore
  /** When absent, only API keys are accepted. */
  readonly oauth: OAuthTokens | undefined
}

/** Authenticates the caller and determines the project that the request selects. */
export async function authenticate(
  headers: IncomingHttpHeaders,
  { keys, organizations, oauth }: Credentials,
): Promise<OrganizationCaller> {
  const key = readBearer(headers.authorization)
  if (!key) throw new BerthError('unauthorized', { reason: `No API key. ${keyHeader}` })
  const token = oauth && OAuthTokens.isToken(key) ? await oauth.verify(key) : undefined
  const scope = token ?? (await keys.find(hashApiKey(key)))
  if (!scope) throw new BerthError('unauthorized', { reason: `The API key is not valid. ${keyHeader}` })

  return {
    keyId: scope.keyId,
    keyName: scope.keyName,
    organizationId: scope.organizationId,
    keyProjectId: scope.projectId,
    chosenProjectId: await chooseProject(headers, scope, organizations),
    defaultProjectId: scope.defaultProjectId,
    ...(token && { token: token.token }),
  }
}

/** Narrows the caller to one with a project, for operations that work in a project. */
export function inProject(caller: OrganizationCaller): Caller {
  return { ...caller, projectId: caller.chosenProjectId ?? caller.defaultProjectId ?? throwNoProject() }
}

async function chooseProject(
  headers: IncomingHttpHeaders,
  scope: KeyScope,
  organizations: OrganizationStore,
): Promise<ProjectId | null> {
  if (scope.projectId && !scope.isProjectActive) throwNoProject()
  const selectors: ProjectSelector[] = []
  const id = headerText(headers['x-kernel-project-id'])
  const idOrName = headerText(headers['x-kernel-project'])
  if (id) selectors.push({ id })
  if (idOrName) selectors.push({ idOrName })
  if (selectors.length === 0) return scope.projectId

  const found = await Promise.all(
    selectors.map((selector) => organizations.findProject(scope.organizationId, selector)),
  )
  const projectId = found[0]
  if (!projectId || found.includes(undefined)) return throwNoProject()
  if (found.some((other) => other !== projectId)) {
    throw new BerthError('bad_request', { reason: 'X-Kernel-Project-Id and X-Kernel-Project name different projects.' })
  }
  if (scope.projectId && scope.projectId !== projectId) {
    throw new BerthError('forbidden', { reason: 'This API key belongs to another project.' })
  }
  return projectId
}

function throwNoProject(): never {
  throw new BerthError('project_not_found')
}

/** Non-ASCII header bytes are UTF-8. An empty value counts as absent. */
function headerText(value: string | string[] | undefined): string | undefined {
  const text = Buffer.from(String(value ?? ''), 'latin1')
    .toString('utf8')
    .trim()
  checkText(text)
  return text || undefined
}
