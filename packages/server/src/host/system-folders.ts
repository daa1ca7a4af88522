import { lstat, readlink } from 'node:fs/promises'

const legacyPaths = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32']

/** bubblewrap arguments that mount the system's programs and libraries, read-only, at all of their paths. */
export async function systemFolders(): Promise<readonly string[]> {
  const old = await Promise.all(legacyPaths.map(mountLegacyPath))
  return ['--ro-bind', '/usr', '/usr', ...old.flat()]
}

/** Links into /usr on a merged system, separate folders on others. */
async function mountLegacyPath(path: string): Promise<readonly string[]> {
  const found = await lstat(path).catch(() => undefined)
  if (found?.isSymbolicLink()) return ['--symlink', await readlink(path), path]
  return found?.isDirectory() ? ['--ro-bind', path, path] : []
}
