import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import Table from 'cli-table3'
import pc from 'picocolors'
import { printLine } from '../output.ts'
import { ApiFailure } from './api-failure.ts'

export type OutputFormat = 'table' | 'json'

type Row = Readonly<Record<string, unknown>>

const maxCellLength = 48
/** Used if the output is not a terminal. */
const defaultColumns = 160

/** Prints the JSON of a reply: unchanged, or a list as a table and an object as lines. */
export function printReply(reply: unknown, format: OutputFormat): void {
  if (format === 'json') process.stdout.write(`${JSON.stringify(reply, null, 2)}\n`)
  else process.stdout.write(asText(reply))
}

/** Prints one event of a stream in a line. */
export function printEvent(event: unknown, format: OutputFormat): void {
  const { timestamp, event: kind, message, ...rest } = (typeof event === 'object' && event ? event : {}) as Row
  if (format === 'json' || Object.keys(rest).length > 0) process.stdout.write(`${JSON.stringify(event)}\n`)
  else process.stdout.write(`${pc.dim(String(timestamp ?? ''))} ${message ?? kind ?? ''}\n`.trimStart())
}

/** Writes the bytes of a reply to a file, or to standard output if that is not a terminal. */
export async function saveReply(response: Response, path: string | undefined): Promise<void> {
  if (path === undefined && process.stdout.isTTY) {
    await response.body?.cancel()
    throw new ApiFailure('the reply is a file: use --output-file, or redirect standard output', 'usage')
  }
  if (!response.body) return
  if (path !== undefined && path !== '-') return writeReply(response.body, path)
  await pipeline(Readable.fromWeb(response.body as NodeReadableStream), process.stdout, { end: false })
}

/** Writes the bytes of a reply to a file. */
export async function writeReply(body: NonNullable<Response['body']>, path: string): Promise<void> {
  await pipeline(Readable.fromWeb(body as NodeReadableStream), createWriteStream(path)).catch((error: unknown) => {
    if (!isFileError(error)) throw error
    throw new ApiFailure(`${path} cannot be written: ${error.message}`, 'cannotCreate')
  })
  printLine(`wrote ${path}`)
}

function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && ['open', 'write'].includes(String(error.syscall))
}

function asText(reply: unknown): string {
  const rows = rowsOf(reply)
  if (rows) return rows.length === 0 ? `${pc.dim('none')}\n` : tableOf(rows)
  if (typeof reply !== 'object' || reply === null) return `${String(reply)}\n`
  const fields = flatten(reply as Row)
  const width = Math.max(0, ...fields.map(([name]) => name.length))
  return fields.map(([name, value]) => `${pc.dim(name.padEnd(width))}  ${value}\n`).join('')
}

/** The list of a reply, possibly as the only member of an object. */
function rowsOf(reply: unknown): readonly Row[] | undefined {
  const lists = Array.isArray(reply) ? [reply] : Object.values((reply ?? {}) as Row).filter(Array.isArray)
  const [list, ...others] = lists as readonly (readonly unknown[])[]
  const hasOtherMembers = !Array.isArray(reply) && Object.keys((reply ?? {}) as Row).length > 1
  if (!list || others.length > 0 || hasOtherMembers) return undefined
  return list.every((row) => typeof row === 'object' && row !== null) ? (list as readonly Row[]) : undefined
}

/** As many columns as fit, in the order of the fields. */
function tableOf(rows: readonly Row[]): string {
  const cells = rows.map((row) => new Map(Object.entries(row).filter(([, value]) => isShort(value))))
  const names = [...new Set(cells.flatMap((row) => [...row.keys()]))]
  const width = (name: string) => Math.max(name.length, ...cells.map((row) => textOf(row.get(name)).length)) + 2
  let left = process.stdout.columns || defaultColumns
  const shown = names.filter((name) => {
    left -= width(name)
    return left >= 0
  })
  const table = new Table({
    head: shown.map((name) => pc.dim(name)),
    chars: plain,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
  })
  for (const row of cells) table.push(shown.map((name) => textOf(row.get(name))))
  return `${table.toString().replaceAll(/ +$/gm, '')}\n`
}

const plain = Object.fromEntries(
  ['top', 'bottom', 'left', 'right', 'mid', 'middle'].flatMap((side) => [
    [side, ''],
    [`${side}-mid`, ''],
    [`${side}-left`, ''],
    [`${side}-right`, ''],
    [`mid-${side}`, ''],
    [`left-${side}`, ''],
    [`right-${side}`, ''],
  ]),
)

function isShort(value: unknown): boolean {
  return (typeof value !== 'object' || value === null) && textOf(value).length <= maxCellLength
}

function textOf(value: unknown): string {
  return value === undefined || value === null ? '-' : String(value)
}

function flatten(row: Row, prefix = ''): readonly (readonly [string, string])[] {
  return Object.entries(row).flatMap(([name, value]) => {
    if (Array.isArray(value)) return [[prefix + name, JSON.stringify(value)] as const]
    if (typeof value === 'object' && value !== null) return flatten(value as Row, `${prefix}${name}.`)
    return [[prefix + name, textOf(value)] as const]
  })
}
