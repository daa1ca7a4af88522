import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs'
import { rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { Archive } from './archive.ts'
import { type ArchiveEntry, checkLinkTarget } from './archive-entry.ts'

/** Written synchronously: passing each call of the file system to another thread would take longer. */
const maxBytesAtOnce = 64 * 1024

interface UnpackOptions {
  /** Created here and must not exist yet, so that existing files cannot interfere. */
  readonly folder: string
  /** Unpacks only the content of this folder of the archive. When absent, unpacks the whole archive. */
  readonly root?: string | undefined
}

/** Unpacks into a new folder. Removes the folder on failure. */
export async function unpackArchive(archive: Archive, { folder, root }: UnpackOptions): Promise<void> {
  mkdirSync(folder)
  try {
    const members = archive.entries.flatMap((entry) => placeBelow(root, entry))
    const made = new Set<string>([folder])
    for (const { entry, place } of members) {
      const target = join(folder, place)
      makeFolders(entry.kind === 'folder' ? target : dirname(target), made)
      if (entry.kind === 'file') await writeFile(archive, entry, target)
    }
    // Links are created last: until then no path in the folder leads elsewhere.
    for (const { entry, place } of members) {
      if (entry.kind !== 'link') continue
      const leadsTo = archive.links.get(entry.path) ?? ''
      checkLinkTarget(place, leadsTo) // Checked again: below `root`, paths have fewer levels.
      await symlink(leadsTo, join(folder, place))
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

function placeBelow(root: string | undefined, entry: ArchiveEntry): readonly { entry: ArchiveEntry; place: string }[] {
  if (root === undefined) return [{ entry, place: entry.path }]
  return entry.path.startsWith(`${root}/`) ? [{ entry, place: entry.path.slice(root.length + 1) }] : []
}

function makeFolders(path: string, made: Set<string>): void {
  if (made.has(path)) return
  makeFolders(dirname(path), made)
  mkdirSync(path)
  made.add(path)
}

async function writeFile(
  archive: Archive,
  { path, isExecutable, sizeBytes }: ArchiveEntry,
  target: string,
): Promise<void> {
  const options = { flag: 'wx', mode: isExecutable ? 0o755 : 0o644 }
  const content = await archive.read(path)
  if (sizeBytes <= maxBytesAtOnce) writeFileSync(target, await buffer(content), options)
  else await pipeline(content, createWriteStream(target, { flags: options.flag, mode: options.mode }))
}
