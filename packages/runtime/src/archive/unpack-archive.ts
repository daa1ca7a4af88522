import { createWriteStream } from 'node:fs'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Archive } from './archive.ts'
import { type ArchiveEntry, checkLinkTarget } from './archive-entry.ts'

interface UnpackOptions {
  /** Created here and must not exist yet, so that existing files cannot interfere. */
  readonly folder: string
  /** Unpacks only the content of this folder of the archive. When absent, unpacks the whole archive. */
  readonly root?: string | undefined
}

/** Unpacks into a new folder. Removes the folder on failure. */
export async function unpackArchive(archive: Archive, { folder, root }: UnpackOptions): Promise<void> {
  await mkdir(folder)
  try {
    const members = archive.entries.flatMap((entry) => placeBelow(root, entry))
    const made = new Set<string>([folder])
    for (const { entry, place } of members) {
      const target = join(folder, place)
      await makeFolders(entry.kind === 'folder' ? target : dirname(target), made)
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

async function makeFolders(path: string, made: Set<string>): Promise<void> {
  if (made.has(path)) return
  await makeFolders(dirname(path), made)
  await mkdir(path)
  made.add(path)
}

async function writeFile(archive: Archive, { path, isExecutable }: ArchiveEntry, target: string): Promise<void> {
  const mode = isExecutable ? 0o755 : 0o644
  await pipeline(await archive.read(path), createWriteStream(target, { flags: 'wx', mode }))
}
