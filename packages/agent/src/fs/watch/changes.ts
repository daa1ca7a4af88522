import type { Stats } from 'node:fs'
import type { FsEvent } from '@berth/contract/agent/operations/fs-types.ts'

/** What a watch remembers of a file: enough to detect that it was replaced or has changed. */
export interface KnownFile {
  /** Not only the inode number, which is reused for new files. */
  readonly identity: string
  readonly content: string
  readonly isEmpty: boolean
  readonly isFolder: boolean
  readonly device: number
}

export function knownFile(stats: Stats): KnownFile {
  return {
    identity: `${stats.ino}:${stats.birthtimeMs}`,
    content: `${stats.mtimeMs}:${stats.size}`,
    isEmpty: stats.size === 0,
    isFolder: stats.isDirectory(),
    device: stats.dev,
  }
}

/**
 * A path that has changed, with its file before and after; absent if there was or is no file. Both are absent if a file
 * existed only in between.
 */
export interface Difference {
  readonly path: string
  readonly before: KnownFile | undefined
  readonly after: KnownFile | undefined
}

export interface FileChange {
  readonly type: FsEvent['type']
  readonly path: string
  /** Absent if nobody has seen what it was. */
  readonly isFolder?: boolean
}

/**
 * Converts differences to events. A path that is gone was renamed if its file is now at another path; a new file with
 * content was also written. Permissions and the contents of a folder do not count as changes.
 */
export function changesOf(differences: readonly Difference[]): readonly FileChange[] {
  const arrivals = pairMoves(differences)
  const told = new Set(arrivals.values())
  return differences.flatMap((difference) => {
    const { path, before, after } = difference
    if (told.has(difference)) return []
    const arrival = arrivals.get(difference)
    if (arrival) return [tell('RENAME', path, before), tell('CREATE', arrival.path, arrival.after)]
    if (!before && !after) return [{ type: 'CREATE', path } as const, { type: 'DELETE', path } as const]
    if (!after) return [tell('DELETE', path, before)]
    const created = tell('CREATE', path, after)
    const written = after.isFolder || after.isEmpty ? [] : [tell('WRITE', path, after)]
    if (!before) return [created, ...written]
    if (before.isFolder || after.isFolder) {
      return before.identity === after.identity ? [] : [tell('DELETE', path, before), created, ...written]
    }
    const isSame = before.identity === after.identity && before.content === after.content
    return isSame ? [] : [tell('WRITE', path, after)]
  })
}

/** Each path that is gone, with the new path of its file. */
export function pairMoves(differences: readonly Difference[]): ReadonlyMap<Difference, Difference> {
  const arrivals = new Map<string, Difference>()
  for (const difference of differences) {
    const { before, after } = difference
    if (after && after.identity !== before?.identity) arrivals.set(after.identity, difference)
  }
  const moves = new Map<Difference, Difference>()
  for (const difference of differences) {
    const { before, after } = difference
    const arrival = before && !after && arrivals.get(before.identity)
    if (!arrival) continue
    moves.set(difference, arrival)
    arrivals.delete(before.identity)
  }
  return moves
}

function tell(type: FsEvent['type'], path: string, file: KnownFile | undefined): FileChange {
  return { type, path, isFolder: file?.isFolder ?? false }
}
