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
/** How long changes are gathered: the two halves of a rename are looked at together. */
const gatherMilliseconds = 30
/** How many files may still be remembered, for all watches together. */
export interface WatchRoom {
  files: number
}

export interface WatchTarget {
  /** As the caller wrote it, and as events tell it. */
  readonly path: string
  /** A folder, without links. */
  readonly folder: string
  /** The only name in it that counts. */
  readonly only?: string
  readonly recursive: boolean
}

/**
 * Watches by looking: the system says where something happened, and what is there then is held against what was there
 * before. However fast changes come, it remembers no more than the files there are, and misses none that stays.
 */
export class FileWatch {
  readonly events: EventBuffer
  readonly #target: WatchTarget
  readonly #root: string
  readonly #room: WatchRoom
  readonly #folders = new Map<string, WatchedFolder>()
  #rootFile: KnownFile | undefined
  #marks = new Marks()
  /** Paths that one event has told of without anything to be seen there: the other half of a short life may follow. */
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

  /** Remembers what is there; what comes later is an event. */
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
    await this.#lookUntilQuiet()
    this.#isOpen = true
  }

  /** Whether it was closed, or what it watches is gone. */
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
    // What goes wrong here is for nobody to hear, but whoever reads must not think that nothing happened.
    if (this.#isOpen) this.#lookUntilQuiet().catch(() => this.events.lose())
  }

  #lookUntilQuiet(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #look(): Promise<void> {
    let lastingMilliseconds = 0
    while (!this.#marks.isEmpty) {
      // In a flood, looking takes no more than half of the time.
      if (this.#isOpen) await delay(Math.max(gatherMilliseconds, lastingMilliseconds))
      const begunAt = performance.now()
      const differences = await this.#compareMarked()
      const changes = changesOf(differences)
      this.#remember(differences)
      for (const change of changes) this.#tell(change)
      // Nothing more can happen in a folder that is gone: who waits for it is told by the end of the stream.
      if (this.#isOpen && !this.#folders.has(this.#root)) return this.close()
      lastingMilliseconds = performance.now() - begunAt
    }
  }

  /** What is not as it is remembered, of all that is marked. */
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
      else differences.push(...this.#shortLives(path, folder, { marks: folderMarks, found, halves }), ...found)
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
   * What has come and gone since the last look: two events of a path at which nothing was or is. One alone is the late
   * news of something that was seen to be gone already, or half of a life whose end comes with the next look. A folder
   * tells of itself too, as of something in it.
   */
  #shortLives(path: string, { ownName }: WatchedFolder, look: Look): readonly Difference[] {
    const seen = new Set(look.found.map((difference) => difference.path))
    return [...look.marks.names].flatMap(([name, times]) => {
      const key = childKey(path, name)
      if (times === 0 || name === ownName || seen.has(key) || !this.#counts(name)) return []
      if (times + (look.halves.has(key) ? 1 : 0) > 1) return [{ path: key, before: undefined, after: undefined }]
      this.#halves.add(key)
      return []
    })
  }

  /** Nobody tells of the root but the folder above, which is not watched. */
  async #compareRoot(): Promise<readonly Difference[]> {
    if (!this.#rootFile || !this.#folders.has(this.#root)) return []
    const found = await lookAt(this.#root)
    if (found?.identity === this.#rootFile.identity) return []
    return [{ path: this.#root, before: this.#rootFile, after: undefined }]
  }

  /** Takes over how things are now; of a new folder, what is in it comes next. */
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
    // What is mounted below is none of it, least of all a file system of the kernel's.
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
      else if (isRoot) throw error // Another has gone already, or may not be looked into.
    }
  }

  /** What is known of a folder goes with it; what has changed in it meanwhile is found there. */
  #moveFolders(from: string, to: string): void {
    for (const [key, folder] of [...this.#folders]) {
      if (!isBelow(key, from)) continue
      this.#folders.delete(key)
      folder.key = `${to}${key.slice(from.length)}`
      this.#folders.set(folder.key, folder)
      this.#marks.addAll(folder.key)
    }
  }

  /** Ends the watch of a folder and all below it; what was in them may be told as deleted. */
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
    else throw new BerthError('watch_limit_reached', { reason: 'path: holds more than the session can watch.' })
  }

  #tell({ type, path, isFolder }: FileChange): void {
    const { only, path: root } = this.#target
    if (only !== undefined && path === this.#root) return // The file in it was told.
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
  /** From the look before. */
  readonly halves: ReadonlySet<string>
}

function isBelow(key: string, folder: string): boolean {
  return key === folder || key.startsWith(childKey(folder, ''))
}
