import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { AuditEntry } from './audit-record.ts'

const suffix = '.jsonl'

/** The entries of a file, which is removed when they are stored elsewhere. */
export interface JournalPart {
  readonly entries: readonly AuditEntry[]
  remove(): Promise<void>
}

/**
 * Entries that are not in the database yet. A line is written to the kernel before the response is sent, which takes
 * some microseconds. Written data survives this process, however it ends, and the next server finds the files.
 */
export class AuditJournal {
  readonly #folder: string
  readonly #logger: Logger
  #current: { readonly path: string; readonly file: number } | undefined
  #count = 0
  /** Entries that could not be written to disk. */
  #unwritten: string[] = []

  constructor(folder: string, logger: Logger) {
    this.#folder = folder
    this.#logger = logger
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  }

  append(entry: AuditEntry): void {
    const lines = [...this.#unwritten, `${JSON.stringify(entry)}\n`]
    try {
      this.#current ??= this.#open(entry.eventId)
      writeSync(this.#current.file, lines.join(''))
      this.#unwritten = []
    } catch (error) {
      if (this.#unwritten.length === 0)
        this.#logger.error({ err: error }, 'entries of the audit log are only in memory')
      this.#unwritten = lines
    }
  }

  /** Yields everything that was written so far, including by earlier servers. */
  async *parts(): AsyncGenerator<JournalPart> {
    const held = new Set(this.#unwritten)
    if (held.size > 0) yield { entries: this.#parse([...held].join('')), remove: async () => this.#forget(held) }
    this.close()
    for (const name of (await readdir(this.#folder)).toSorted()) {
      // A file that was started meanwhile is left for the next call.
      const path = join(this.#folder, name)
      if (!name.endsWith(suffix) || path === this.#currentPath()) continue
      const text = await readFile(path, 'utf8').catch(unlessGone)
      if (text !== undefined) yield { entries: this.#parse(text), remove: () => rm(path, { force: true }) }
    }
  }

  close(): void {
    if (this.#current) closeSync(this.#current.file)
    this.#current = undefined
  }

  #currentPath(): string | undefined {
    return this.#current?.path
  }

  /** The first entry names the file, so that names sort by time and are unique across servers. */
  #open(name: string) {
    this.#count += 1
    const path = join(this.#folder, `${name}-${this.#count}${suffix}`)
    return { path, file: openSync(path, 'ax', 0o600) }
  }

  #forget(lines: ReadonlySet<string>): void {
    this.#unwritten = this.#unwritten.filter((line) => !lines.has(line))
  }

  /** A power failure may leave half a line at the end, of a request that was never answered. */
  #parse(text: string): AuditEntry[] {
    return text.split('\n').flatMap((line) => {
      if (line === '') return []
      try {
        const entry = JSON.parse(line)
        return [{ ...entry, occurredAt: new Date(entry.occurredAt) }]
      } catch {
        this.#logger.warn({ bytes: line.length }, 'the audit journal contains an incomplete line')
        return []
      }
    })
  }
}

/** Another process has moved it to the database. */
function unlessGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
