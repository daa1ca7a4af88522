import { createWriteStream } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { AppRegion, defaultVersion, maxDeploymentBytes, maxEnvironmentVariables } from '@berth/contract/apps/app.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type FieldPath, readMultipart } from '@berth/runtime/http/multipart.ts'
import { validate } from '@berth/runtime/http/validate.ts'
import { z } from 'zod'
import { entrypointPattern } from './machines/app-runtime.ts'

/** A complete deployment, whose archive is in a file. */
export interface DeploymentUpload {
  readonly path: string
  readonly entrypoint: string
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

/** Reads the parts in the spelling of any client: `env_vars[NAME]` and `env_vars.NAME`. */
export async function receiveDeployment(request: IncomingMessage, folder: string): Promise<DeploymentUpload> {
  const path = join(folder, 'source.zip')
  const texts = new Map<string, string>()
  const variables = new Map<string, string>()
  let hasFile = false
  const parts = readMultipart(request, {
    headers: request.headers,
    isKnown: ([field = '']) => fields.includes(field) || field === 'env_vars',
    isFile: (path) => path.join() === 'file',
    maxParts: fields.length * 2 + maxEnvironmentVariables,
    maxFileBytes: maxDeploymentBytes,
  })
  for await (const part of parts) {
    if (part.kind === 'file') {
      if (hasFile) throw refusal('file: must come once.')
      hasFile = true
      await pipeline(part.content, createWriteStream(path))
    } else if (part.path[0] === 'env_vars') addVariable(variables, part.path, part.text)
    else if (part.path[0] === 'source') {
      throw new BerthError('field_not_supported', {
        field: 'source',
        reason: 'only archives are deployed here: send file.',
      })
    } else addText(texts, part.path, part.text)
  }
  if (!hasFile) throw refusal('file: is missing.')
  const entrypoint = texts.get('entrypoint_rel_path')
  if (entrypoint === undefined) throw refusal('entrypoint_rel_path: is missing.')
  return {
    path,
    entrypoint: plainEntrypoint(entrypoint),
    version: texts.get('version') ?? defaultVersion,
    isForced: texts.get('force') === 'true',
    variables: Object.fromEntries(variables),
  }
}

function addText(texts: Map<string, string>, path: FieldPath, text: string): void {
  const [field = ''] = path
  // Clients send an empty text for what is not set.
  if (text === '') return
  if (texts.has(field)) throw refusal(`${field}: must come once.`)
  const schema = schemas[field as keyof typeof schemas]
  texts.set(field, schema ? String(validate(schema as z.ZodType, text, field)) : text)
}

function addVariable(variables: Map<string, string>, path: FieldPath, value: string): void {
  const name = validate(VariableName, path.slice(1).join('.'), 'env_vars')
  if (variables.has(name)) throw refusal(`env_vars: must name ${name} once.`)
  if (value.includes('\0')) throw refusal(`env_vars: the value of ${name} must not contain NUL.`)
  if (variables.size === maxEnvironmentVariables) {
    throw refusal(`env_vars: must have at most ${maxEnvironmentVariables} names.`)
  }
  variables.set(name, value)
}

function plainEntrypoint(text: string): string {
  const names = text.split('/').filter((name) => name !== '' && name !== '.')
  if (text.startsWith('/') || names.includes('..') || names.length === 0) {
    throw refusal('entrypoint_rel_path: must be a path inside the archive.')
  }
  const entrypoint = names.join('/')
  if (!entrypointPattern.test(entrypoint)) {
    throw refusal('entrypoint_rel_path: must end in .ts, .js, .mts, .mjs, .cts, .cjs or .py.')
  }
  return entrypoint
}

function refusal(reason: string): BerthError {
  return new BerthError('bad_request', { reason })
}
