import { mkdir, rmdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Creates a folder and its missing parents, and returns the topmost one created. Node's recursive mkdir loops forever
 * when the system reports ENOENT below an existing folder (/proc), and reports ENOENT instead of EROFS. Rejects with
 * EEXIST when something that is not a folder exists on the path.
 */
export async function makeFolders(path: string): Promise<string | undefined> {
  const missing: string[] = []
  for (let folder = path; !(await isFolder(folder)); folder = dirname(folder)) missing.unshift(folder)
  for (const [index, folder] of missing.entries()) {
    try {
      await makeFolder(folder)
    } catch (error) {
      for (const made of missing.slice(0, index).toReversed()) await rmdir(made).catch(() => {}) // Already in use.
      throw error
    }
  }
  return missing[0]
}

/** Returns the folder or its closest existing parent. Rejects with EEXIST when something else exists on the path. */
export async function nearestFolder(path: string): Promise<string> {
  let folder = path
  while (!(await isFolder(folder))) folder = dirname(folder)
  return folder
}

/** Another process may create the same folder at the same time. */
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
