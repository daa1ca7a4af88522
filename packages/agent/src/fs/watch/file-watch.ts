import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { BerthError } from '@berth/contract/errors.ts'
import { partPrefix } from '../transfer/staged-file.ts'
import { changesOf, type Difference, type FileChange, type KnownFile, pairMoves } from './changes.ts'
import { EventBuffer } from './event-buffer.ts'
import { type FolderMarks, Marks } from './marks.ts'
import { childKey, lookAt, lookAtAll, namesIn, splitKey, toKey, toText } from './raw-path.ts'
import { WatchedFolder } from './watched-folder.ts'

const bufferedEvents = 1000
/** How long changes are collected: both halves of a rename are compared together. */
const gatherMilliseconds = 30
/** How many more files may be remembered, for all watches together. */
export interface WatchRoom {
  files: number
}

export interface WatchTarget {
  /** As the caller wrote it, and as it appears in events. */
  readonly path: string
  /** A folder, without links. */
  readonly folder: string
  /** The only relevant name in it. */
  readonly only?: string
  readonly recursive: boolean
}

/**
 * Watches by comparing: the system says where something happened, and the files there are compared with those
 * remembered. However fast changes come, it remembers only as much as there are files, and misses no lasting change.
 */
export class FileWatch {
  readonly events: EventBuffer
  readonly #target: WatchTarget
  readonly #root: string
  readonly #room: WatchRoom
  readonly #folders = new Map<string, WatchedFolder>()
  #rootFile: KnownFile | undefined
  #marks = new Marks()
  /** Paths with one event but without a visible file: the other half of a short-lived file may follow. */
  #halves = new Set<string>()
  #looking: Promise<void> | undefined
  #isOpen = false

  private constructor(target: WatchTarget, room: WatchRoom) {
    this.#target = target
    this.#root = toKey(target.folder)
    this.#room = room
    const isFolder = target.only === undefined
    this.events = new EventBuffer(bufferedEvents, {
      type: 'WRITE',
      path: target.path,
      name: basename(target.path),
      is_dir: isFolder,
    })
  }

  /** Remembers the current files; later changes are events. */
  static async open(target: WatchTarget, room: WatchRoom): Promise<FileWatch> {
    const opened = new FileWatch(target, room)
    try {
      await opened.#begin()
      return opened
    } catch (error) {
      opened.close()
      throw error
    }
  }

  async #begin(): Promise<void> {
    this.#rootFile = await lookAt(this.#root)
    this.#follow(this.#root, true, this.#rootFile)
    await this.#compareUntilQuiet()
    this.#isOpen = true
  }

  /** Whether it was closed, or the watched path is gone. */
  get hasEnded(): boolean {
    return this.events.isClosed
  }

  close(): void {
    this.#forget(this.#root)
    this.#marks = new Marks()
    this.events.close()
  }

  #mark({ key: folder }: WatchedFolder, name: string, cameOrWent: boolean): void {
    if (!this.#counts(name) && folder !== this.#root) return
    this.#marks.add(folder, name, cameOrWent)
    // Errors have no caller to report to, but readers must not assume that nothing happened.
    if (this.#isOpen) this.#compareUntilQuiet().catch(() => this.events.lose())
  }

  #compareUntilQuiet(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #look(): Promise<void> {
    let lastingMilliseconds = 0
    while (!this.#marks.isEmpty) {
      // With many changes, comparing takes at most half of the time.
      if (this.#isOpen) await delay(Math.max(gatherMilliseconds, lastingMilliseconds))
      const begunAt = performance.now()
      const differences = await this.#compareMarked()
      const changes = changesOf(differences)
      this.#remember(differences)
      for (const change of changes) this.#tell(change)
      // Nothing more can happen in a folder that is gone: the end of the stream tells readers.
      if (this.#isOpen && !this.#folders.has(this.#root)) return this.close()
      lastingMilliseconds = performance.now() - begunAt
    }
  }

  /** Differences from the remembered state in all marked places. */
  async #compareMarked(): Promise<readonly Difference[]> {
    const marks = this.#marks
    this.#marks = new Marks()
    if (marks.isFlood) for (const path of this.#folders.keys()) marks.addAll(path)
    if ((marks.isFlood || marks.hasLost) && this.#isOpen) this.events.lose()
    const halves = this.#halves
    this.#halves = new Set()
    const differences: Difference[] = []
    for (const [path, folderMarks] of marks.folders) {
      const folder = this.#folders.get(path)
      if (!folder) continue
      const found = await this.#compare(path, folder, folderMarks)
      if (folder.isQuiet) this.#remember(found, true)
      else differences.push(...this.#shortLived(path, folder, { marks: folderMarks, found, halves }), ...found)
      folder.isQuiet = false
    }
    if (marks.folders.has(this.#root)) differences.push(...(await this.#compareRoot()))
    return differences
  }

  async #compare(path: string, { files }: WatchedFolder, marks: FolderMarks): Promise<readonly Difference[]> {
    const all = marks.isAll ? [...files.keys(), ...(await namesIn(path))] : []
    const names = [...new Set([...marks.names.keys(), ...all])].filter((name) => this.#counts(name))
    const keys = names.map((name) => childKey(path, name))
    const found = await lookAtAll(keys)
    return keys
      .map((key, index) => ({ path: key, before: files.get(names[index] as string), after: found[index] }))
      .filter(({ before, after }) => before || after)
  }

  /**
   * Files that appeared and disappeared since the last comparison: two events for a path without a file before and
   * after. A single event is either late news of a known deletion, or half of a short-lived file whose end comes with
   * the next comparison. A folder reports itself like a file in it.
   */
  #shortLived(path: string, { ownName }: WatchedFolder, look: Look): readonly Difference[] {
    const seen = new Set(look.found.map((difference) => difference.path))
    return [...look.marks.names].flatMap(([name, times]) => {
      const key = childKey(path, name)
      if (times === 0 || name === ownName || seen.has(key) || !this.#counts(name)) return []
      if (times + (look.halves.has(key) ? 1 : 0) > 1) return [{ path: key, before: undefined, after: undefined }]
      this.#halves.add(key)
      return []
    })
  }

  /** Only the parent folder reports the root, and the parent is not watched. */
  async #compareRoot(): Promise<readonly Difference[]> {
    if (!this.#rootFile || !this.#folders.has(this.#root)) return []
    const found = await lookAt(this.#root)
    if (found?.identity === this.#rootFile.identity) return []
    return [{ path: this.#root, before: this.#rootFile, after: undefined }]
  }

  /** Remembers the new state; the contents of new folders are compared next. */
  #remember(differences: readonly Difference[], isQuiet = false): void {
    for (const { path, before, after } of differences) {
      const { folder, name } = splitKey(path)
      const files = this.#folders.get(folder)?.files
      if (!files) continue
      if (before && files.delete(name)) this.#room.files += 1
      if (!after) continue
      if (this.#room.files === 0) this.#onLimit()
      else {
        this.#room.files -= 1
        files.set(name, after)
      }
    }
    const moves = pairMoves(differences)
    const arrivals = new Set(moves.values())
    for (const difference of differences) {
      const { path, before, after } = difference
      if (before?.identity === after?.identity) continue
      const moved = moves.get(difference)
      if (moved && before?.isFolder) this.#moveFolders(path, moved.path)
      else if (before?.isFolder) this.#forget(path, true)
      if (after?.isFolder && !arrivals.has(difference)) this.#follow(path, isQuiet, after)
    }
  }

  #follow(path: string, isQuiet: boolean, file: KnownFile | undefined): void {
    const isRoot = path === this.#root
    // File systems mounted below do not belong to it, least of all those of the kernel.
    if (!isRoot && (!this.#target.recursive || file?.device !== this.#rootFile?.device)) return
    try {
      const folder = new WatchedFolder(path, isQuiet, (changed, name, cameOrWent) =>
        this.#mark(changed, name, cameOrWent),
      )
      this.#folders.set(path, folder)
      this.#marks.addAll(path)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOSPC' || code === 'EMFILE') this.#onLimit()
      else if (isRoot) throw error // Another folder was deleted already, or is not readable.
    }
  }

  /** The known contents of a folder move with it; changes in it are then found at the new path. */
  #moveFolders(from: string, to: string): void {
    for (const [key, folder] of [...this.#folders]) {
      if (!isBelow(key, from)) continue
      this.#folders.delete(key)
      folder.key = `${to}${key.slice(from.length)}`
      this.#folders.set(folder.key, folder)
      this.#marks.addAll(folder.key)
    }
  }

  /** Stops watching a folder and everything below it; with `isTold`, their files are reported as deleted. */
  #forget(path: string, isTold = false): void {
    for (const [key, folder] of this.#folders) {
      if (!isBelow(key, path)) continue
      folder.close()
      this.#folders.delete(key)
      this.#room.files += folder.files.size
      if (!isTold) continue
      for (const [name, { isFolder }] of folder.files) {
        this.#tell({ type: 'DELETE', path: childKey(key, name), isFolder })
      }
    }
  }

  #onLimit(): void {
    if (this.#isOpen) this.events.lose()
    else throw new BerthError('watch_limit_reached', { reason: 'path: contains more than the session can watch.' })
  }

  #tell({ type, path, isFolder }: FileChange): void {
    const { only, path: root } = this.#target
    if (only !== undefined && path === this.#root) return // The event of the file was sent already.
    const below = this.#root === '/' ? path : path.slice(this.#root.length)
    const told = only === undefined ? `${root === '/' ? '' : root}${toText(below)}` : root
    this.events.push({ type, path: told, name: basename(told), ...(isFolder !== undefined && { is_dir: isFolder }) })
  }

  #counts(name: string): boolean {
    const { only } = this.#target
    return only === undefined ? !name.startsWith(partPrefix) : name === toKey(only)
  }
}

interface Look {
  readonly marks: FolderMarks
  readonly found: readonly Difference[]
  /** From the previous comparison. */
  readonly halves: ReadonlySet<string>
}

function isBelow(key: string, folder: string): boolean {
  return key === folder || key.startsWith(childKey(folder, ''))
}
