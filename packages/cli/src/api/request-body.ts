import { openAsBlob } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { buffer, text as readText } from 'node:stream/consumers'
import { ApiFailure } from './api-failure.ts'
import type { FieldFlag } from './operation-flags.ts'

/** A value as commander gives it. */
export type FlagValue = string | number | boolean | readonly string[]

/** The text itself; `@path` reads a file, `@-` reads standard input, and `@@` escapes a leading `@`. */
export async function textOf(value: string): Promise<string> {
  if (!value.startsWith('@')) return value
  if (value.startsWith('@@')) return value.slice(1)
  return value === '@-' ? readText(process.stdin) : readFile(value.slice(1), 'utf8').catch(unreadable(value.slice(1)))
}

/** The file at the path; `-` is standard input. */
export async function fileOf(path: string): Promise<File> {
  if (path === '-') return new File([new Uint8Array(await buffer(process.stdin))], 'stdin')
  // openAsBlob throws synchronously if there is no file.
  const content = await Promise.try(() => openAsBlob(path)).catch(unreadable(path))
  return new File([content], basename(path))
}

/** Converts the text of a flag to the value of its field. */
export async function fieldValue({ name, kind }: FieldFlag, value: FlagValue): Promise<unknown> {
  if (kind === 'pairs') return Object.fromEntries((value as readonly string[]).map((pair) => pairOf(name, pair)))
  if (kind === 'list') return Promise.all((value as readonly string[]).map(textOf))
  if (kind === 'text') return textOf(value as string)
  if (kind === 'json') return jsonOrText(await textOf(value as string))
  return value
}

/** Sets a nested field of a request. */
export function setField(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [name = '', ...rest] = path
  if (rest.length === 0) {
    target[name] = value
    return
  }
  const inner = { ...(target[name] as Record<string, unknown> | undefined) }
  setField(inner, rest, value)
  target[name] = inner
}

/** A form with field names as in the API: `env_vars[NAME]`, `files[0][dest_path]`. */
export async function formOf(fields: readonly (readonly [FieldFlag, FlagValue])[]): Promise<FormData> {
  const form = new FormData()
  for (const [flag, value] of fields) {
    const name = flag.path.join('.')
    if (flag.kind === 'file') form.append(name, await fileOf(value as string))
    else if (flag.kind === 'parts') await appendParts(form, flag, value as readonly string[])
    else appendField(form, name, await fieldValue(flag, value))
  }
  return form
}

function appendField(form: FormData, name: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) form.append(name, String(value))
  else for (const [key, each] of Object.entries(value)) appendField(form, `${name}[${key}]`, each)
}

async function appendParts(
  form: FormData,
  { name, path, members }: FieldFlag,
  values: readonly string[],
): Promise<void> {
  for (const [index, value] of values.entries()) {
    for (const part of value.split(',')) {
      const [key, content] = pairOf(name, part)
      const member = members.find((each) => each.name === key)
      if (!member) {
        throw new ApiFailure(`--${name}: ${key} must be one of ${members.map((each) => each.name).join(', ')}`, 'usage')
      }
      form.append(`${path.join('.')}[${index}][${key}]`, member.isFile ? await fileOf(content) : content)
    }
  }
}

/** The two parts of `name=value`. */
export function pairOf(flag: string, text: string): readonly [string, string] {
  const end = text.indexOf('=')
  if (end < 1) throw new ApiFailure(`--${flag}: ${text} must have the form name=value`, 'usage')
  return [text.slice(0, end), text.slice(end + 1)]
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function unreadable(path: string): (error: unknown) => never {
  return (error) => {
    throw new ApiFailure(`${path} cannot be read: ${(error as Error).message}`, 'noInput')
  }
}
