import { createWriteStream } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import {
  AppRegion,
  defaultVersion,
  maxDeploymentBytes,
  maxEnvironmentVariables,
  type RepositorySource,
} from '@berth/contract/apps/app.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type FieldPath, readMultipart } from '@berth/runtime/http/multipart.ts'
import { validate } from '@berth/runtime/http/validate.ts'
import { z } from 'zod'
import { entrypointPattern } from '../machines/app-runtime.ts'
import { RepositoryParts } from './repository-parts.ts'

export interface ArchiveSource {
  readonly kind: 'archive'
  /** The path of the file with the archive. */
  readonly path: string
  readonly entrypoint: string
}

export interface RepositoryRequest {
  readonly kind: 'repository'
  readonly url: string
  readonly ref: string
  /** A folder of the repository. */
  readonly path: string | undefined
  /** Relative to the folder. */
  readonly entrypoint: string
  readonly token: string | undefined
}

export interface DeploymentRequest {
  readonly source: ArchiveSource | RepositoryRequest
  readonly version: string
  readonly isForced: boolean
  readonly variables: Readonly<Record<string, string>>
}

const fields = ['file', 'entrypoint_rel_path', 'version', 'region', 'force', 'source']
const schemas = {
  entrypoint_rel_path: z.string().min(1).max(2048),
  version: z.string().min(1).max(255),
  region: AppRegion,
  force: z.enum(['true', 'false']),
} as const
const VariableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,254}$/, { error: 'must be names of letters, digits and _, and begin with no digit' })

/**
 * Reads the parts in the spelling of any client: `env_vars[NAME]` and `env_vars.NAME`, `source` as JSON or by its
 * fields.
 */
export async function receiveDeployment(request: IncomingMessage, folder: string): Promise<DeploymentRequest> {
  const path = join(folder, 'source.zip')
  const texts = new Map<string, string>()
  const variables = new Map<string, string>()
  const repository = new RepositoryParts()
  let hasFile = false
  const parts = readMultipart(request, {
    headers: request.headers,
    isKnown: ([field = '']) => fields.includes(field) || field === 'env_vars',
    isFile: (path) => path.join() === 'file',
    maxParts: fields.length * 4 + maxEnvironmentVariables,
    maxFileBytes: maxDeploymentBytes,
  })
  for await (const part of parts) {
    if (part.kind === 'file') {
      if (hasFile) throw refusal('file: must be given once.')
      hasFile = true
      await pipeline(part.content, createWriteStream(path))
    } else if (part.path[0] === 'env_vars') addVariable(variables, part.path, part.text)
    else if (part.path[0] === 'source') repository.add(part.path, part.text)
    else addText(texts, part.path, part.text)
  }
  const archive = hasFile ? path : undefined
  return {
    source: chooseSource(archive, texts.get('entrypoint_rel_path'), repository.read()),
    version: texts.get('version') ?? defaultVersion,
    isForced: texts.get('force') === 'true',
    variables: Object.fromEntries(variables),
  }
}

function chooseSource(
  archive: string | undefined,
  entrypoint: string | undefined,
  repository: RepositorySource | undefined,
): DeploymentRequest['source'] {
  if (repository) {
    if (archive !== undefined) throw refusal('source: must not be given with file.')
    if (entrypoint !== undefined) throw refusal('entrypoint_rel_path: must not be given with source.')
    const { url, ref, path, auth } = repository
    return {
      kind: 'repository',
      url,
      ref,
      path: path ? plainPath('source.path', path, 'repository') : undefined,
      entrypoint: plainEntrypoint('source.entrypoint', repository.entrypoint, 'repository'),
      token: auth?.token,
    }
  }
  if (archive === undefined) throw refusal('file: is missing.')
  if (entrypoint === undefined) throw refusal('entrypoint_rel_path: is missing.')
  return {
    kind: 'archive',
    path: archive,
    entrypoint: plainEntrypoint('entrypoint_rel_path', entrypoint, 'archive'),
  }
}

function addText(texts: Map<string, string>, path: FieldPath, text: string): void {
  const [field = ''] = path
  // Clients send an empty text for a field that is not set.
  if (text === '') return
  if (texts.has(field)) throw refusal(`${field}: must be given once.`)
  const schema = schemas[field as keyof typeof schemas]
  texts.set(field, schema ? String(validate(schema as z.ZodType, text, field)) : text)
}

function addVariable(variables: Map<string, string>, path: FieldPath, value: string): void {
  const name = validate(VariableName, path.slice(1).join('.'), 'env_vars')
  if (variables.has(name)) throw refusal(`env_vars: must contain ${name} once.`)
  if (value.includes('\0')) throw refusal(`env_vars: the value of ${name} must not contain NUL.`)
  if (variables.size === maxEnvironmentVariables) {
    throw refusal(`env_vars: must have at most ${maxEnvironmentVariables} names.`)
  }
  variables.set(name, value)
}

function plainPath(field: string, text: string, whole: 'archive' | 'repository'): string {
  const names = text.split('/').filter((name) => name !== '' && name !== '.')
  if (text.startsWith('/') || names.includes('..') || names.length === 0) {
    throw refusal(`${field}: must be a path inside the ${whole}.`)
  }
  return names.join('/')
}

function plainEntrypoint(field: string, text: string, whole: 'archive' | 'repository'): string {
  const entrypoint = plainPath(field, text, whole)
  if (entrypointPattern.test(entrypoint)) return entrypoint
  throw refusal(`${field}: must end in .ts, .js, .mts, .mjs, .cts, .cjs or .py.`)
}

function refusal(reason: string): BerthError {
  return new BerthError('bad_request', { reason })
}
