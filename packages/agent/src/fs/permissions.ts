import { chmod, chown, readFile, stat } from 'node:fs/promises'
import { at, refusal } from './fs-error.ts'

interface Permissions {
  readonly mode: string
  readonly owner?: string | undefined
  readonly group?: string | undefined
}

/** Ignores a refused change of owner, which is normal without root. */
export async function setPermissions(path: string, { mode, owner, group }: Permissions): Promise<void> {
  const uid = owner === undefined ? undefined : await numberOf('owner', owner, '/etc/passwd')
  const gid = group === undefined ? undefined : await numberOf('group', group, '/etc/group')
  await at({ field: 'path', path }, async () => {
    const stats = await stat(path)
    if (uid !== undefined || gid !== undefined) {
      await chown(path, uid ?? stats.uid, gid ?? stats.gid).catch(ignoreRefusal)
    }
    // After the owner, because changing the owner clears special bits.
    await chmod(path, Number.parseInt(mode, 8))
  })
}

async function numberOf(field: string, nameOrNumber: string, database: string): Promise<number> {
  if (/^\d{1,9}$/.test(nameOrNumber)) return Number(nameOrNumber)
  const lines = (await readFile(database, 'utf8')).split('\n').map((line) => line.split(':'))
  const entry = lines.find(([name]) => name === nameOrNumber)
  if (!entry) throw refusal(field, `there is no ${field} with that name in the session`)
  return Number(entry[2])
}

/** EINVAL: without root the user namespace of a machine has no such user or group. */
function ignoreRefusal(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPERM' && error.code !== 'EINVAL') throw error
}
