import { lstat, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolders } from '../files/make-folders.ts'
import { BadArchive } from './archive-entry.ts'

/**
 * Moves the content of a folder into another one on the same file system, replacing existing files. Never follows
 * links: a file replaces a link. If a link or a file exists where a folder is needed, nothing is moved.
 */
export async function mergeFolder(from: string, into: string): Promise<void> {
  await checkMerge(from, into, '')
  await merge(from, into)
}

async function checkMerge(from: string, into: string, place: string): Promise<void> {
  for (const { name, isFolder, there } of await compare(from, into)) {
    const named = JSON.stringify(`${place}${name}`)
    if (isFolder && there && there !== 'folder')
      throw new BadArchive(`${named} is a folder in the archive but a ${there} in the target`)
    if (!isFolder && there === 'folder')
      throw new BadArchive(`${named} is a folder in the target but not in the archive`)
    if (isFolder && there) await checkMerge(join(from, name), join(into, name), `${place}${name}/`)
  }
}

async function merge(from: string, into: string): Promise<void> {
  await makeFolders(into)
  for (const { name, isFolder, there } of await compare(from, into)) {
    if (isFolder && there === 'folder') await merge(join(from, name), join(into, name))
    else await rename(join(from, name), join(into, name))
  }
}

interface Member {
  readonly name: string
  readonly isFolder: boolean
  /** What exists under that name in the target folder. */
  readonly there: 'folder' | 'link' | 'file' | undefined
}

async function compare(from: string, into: string): Promise<readonly Member[]> {
  const members = await readdir(from, { withFileTypes: true })
  return Promise.all(
    members.map(async (member) => ({
      name: member.name,
      isFolder: member.isDirectory(),
      there: await kindOf(join(into, member.name)),
    })),
  )
}

async function kindOf(path: string): Promise<Member['there']> {
  try {
    const stats = await lstat(path)
    if (stats.isSymbolicLink()) return 'link'
    return stats.isDirectory() ? 'folder' : 'file'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
