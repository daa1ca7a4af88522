import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { BerthError } from '@berth/contract/errors.ts'
import type { FieldPath, FilePart, Part } from './multipart.ts'

/** A text and its file. */
export interface Pair {
  /** The name of the pair in messages, in the client's spelling: `files[0]`. */
  readonly label: string
  readonly text: string
  /** Must be read before the next pair is requested. */
  readonly content: Readable
}

export interface PairMembers {
  /** The name of the list before each pair: `extensions`. */
  readonly list: string
  /** The names of the members of each pair. */
  readonly file: string
  readonly text: string
  /** Whether a pair may omit the name of the list: `file` and `dest_path`. */
  readonly mayBeBare?: boolean
}

export interface PairOptions extends PairMembers {
  readonly maxPairs: number
  /** An existing folder with enough space for the files. Stores files whose text arrives later. */
  readonly temporaryFolder: string
}

interface HalfPair {
  readonly label: string
  text?: string
  hasFile: boolean
  /** Of a file that arrived before its text. */
  path?: string
}

/**
 * Matches texts and files that arrive in any order, and yields each pair when it is complete. Pairs are matched by
 * index (`files[3][file]`, `files.3.file`), or without one by order: the n-th text with the n-th file (`files[][file]`,
 * `files.file`).
 */
export async function* pairParts(parts: AsyncIterable<Part>, options: PairOptions): AsyncGenerator<Pair, void, void> {
  const halves = new Map<string, HalfPair>()
  const counts = new Map<string, number>()
  let folder: string | undefined
  const keep = async ({ content }: FilePart) => {
    folder ??= await mkdtemp(join(options.temporaryFolder, 'parts-'))
    const path = join(folder, String(halves.size))
    await pipeline(content, createWriteStream(path, { flags: 'wx', mode: 0o600 }))
    return path
  }
  try {
    for await (const part of parts) {
      const place = pairIndexOf(part, options, counts)
      if (!place) continue
      const half = halves.get(place.key) ?? { label: place.label, hasFile: false }
      if (!halves.has(place.key) && halves.size === options.maxPairs) {
        throw refusal(options.list, `must have at most ${options.maxPairs} items`)
      }
      halves.set(place.key, half)
      if (part.kind === 'text') yield* completeWithText(half, part.text, part.field)
      else yield* completeWithFile(half, part, keep)
    }
    checkAllWhole(halves, options)
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true })
  }
}

async function* completeWithText(half: HalfPair, text: string, field: string): AsyncGenerator<Pair, void, void> {
  if (half.text !== undefined) throw refusal(field, 'must be given once')
  half.text = text
  if (half.path === undefined) return
  const content = createReadStream(half.path)
  try {
    yield { label: half.label, text, content }
  } finally {
    content.destroy()
    await rm(half.path, { force: true })
  }
}

async function* completeWithFile(
  half: HalfPair,
  part: FilePart,
  keep: (part: FilePart) => Promise<string>,
): AsyncGenerator<Pair, void, void> {
  if (half.hasFile) throw refusal(part.field, 'must be given once')
  half.hasFile = true
  if (half.text !== undefined) yield { label: half.label, text: half.text, content: part.content }
  else half.path = await keep(part)
}

/** Whether the path belongs to a pair. */
export function isOfPair(path: FieldPath, { list, file, text, mayBeBare = false }: PairMembers): boolean {
  const place = splitPath(path, list)
  return place !== undefined && [file, text].includes(place.member) && (mayBeBare || !place.isBare)
}

/** The pair of a part, or undefined when the request does not use it. */
function pairIndexOf(
  part: Part,
  options: PairOptions,
  counts: Map<string, number>,
): { key: string; label: string } | undefined {
  const { list } = options
  const place = splitPath(part.path, list)
  if (!place || !isOfPair(part.path, options)) return undefined
  const { member } = place
  if (place.index !== undefined) return { key: `index ${place.index}`, label: `${list}[${place.index}]` }

  const spelling = `${place.isBare ? 'bare' : list} ${member}`
  const count = counts.get(spelling) ?? 0
  counts.set(spelling, count + 1)
  return { key: `${place.isBare ? 'bare' : 'order'} ${count}`, label: place.isBare ? member : `${list}[${count}]` }
}

function splitPath(path: FieldPath, list: string): { index?: number; member: string; isBare: boolean } | undefined {
  const [head = '', second = '', third] = path
  if (path.length === 1) return { member: head, isBare: true }
  if (head !== list) return undefined
  if (path.length === 2) return { member: second, isBare: false }
  if (path.length !== 3 || third === undefined) return undefined
  if (second === '') return { member: third, isBare: false }
  return /^\d{1,6}$/.test(second) ? { index: Number(second), member: third, isBare: false } : undefined
}

function checkAllWhole(halves: ReadonlyMap<string, HalfPair>, { list, file, text }: PairOptions): void {
  if (halves.size === 0) throw refusal(list, 'must have at least 1 item')
  for (const half of halves.values()) {
    if (half.text === undefined) throw refusal(half.label, `its ${text} is missing`)
    if (!half.hasFile) throw refusal(half.label, `its ${file} is missing`)
  }
}

function refusal(field: string, rule: string): BerthError {
  return new BerthError('bad_request', { reason: `${field.slice(0, 200)}: ${rule}.` })
}
