import { mkdir, rmdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Makes a folder with those above it, and returns the topmost that was made. Not by Node's recursive form: it tries for
 * ever where the system answers ENOENT below a folder that exists (/proc), and tells ENOENT in place of EROFS. Rejects
 * with EEXIST where something that is no folder is in the way.
 */
export async function makeFolders(path: string): Promise<string | undefined> {
  const missing: string[] = []
  for (let folder = path; !(await isFolder(folder)); folder = dirname(folder)) missing.unshift(folder)
  for (const [index, folder] of missing.entries()) {
    try {
      await makeFolder(folder)
    } catch (error) {
      for (const made of missing.slice(0, index).toReversed()) await rmdir(made).catch(() => {}) // It is in use by now.
      throw error
    }
  }
  return missing[0]
}

/** The folder itself, or the lowest above it that exists. Rejects with EEXIST where something else is in the way. */
export async function nearestFolder(path: string): Promise<string> {
  let folder = path
  while (!(await isFolder(folder))) folder = dirname(folder)
  return folder
}

/** Another may make the same folder at the same time. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !(await isFolder(path))) throw error
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return false
    throw error
  }
  throw Object.assign(new Error(`EEXIST: ${path} is no directory`), { code: 'EEXIST', path })
}
