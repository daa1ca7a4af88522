import { mkdir, symlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Creates the folders for the code of an app, and for the Node.js that programs of its dependencies find by name. */
export async function makeAppFolders(): Promise<void> {
  const programs = join(homedir(), '.berth/bin')
  await Promise.all([mkdir(join(homedir(), 'app'), { recursive: true }), mkdir(programs, { recursive: true })])
  await symlink(process.execPath, join(programs, 'node'))
}
