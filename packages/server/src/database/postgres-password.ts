import { randomBytes } from 'node:crypto'
import { chown, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { readOrCreateFile } from '../host/read-or-create-file.ts'
import type { ServiceUser } from '../host/service-user.ts'

/** The authentication rules. PostgreSQL uses the first matching line, and there is only one. */
const authentication = `# Written by berth at each start. The password is in postgres-password of the data folder.
local all all scram-sha-256
`

/**
 * Created once per data folder. The password protects the database from a compromised helper, in addition to the
 * permissions of the socket's folder.
 */
export function readPostgresPassword(dataFolder: string): Promise<string> {
  return readOrCreateFile(join(dataFolder, 'postgres-password'), () => randomBytes(24).toString('hex'))
}

export interface RequirePasswordOptions {
  readonly cluster: string
  readonly user: ServiceUser | undefined
  readonly connectionString: string
  readonly password: string
}

/**
 * Makes a running PostgreSQL require the password. Clusters of earlier versions require nothing. The rename at the end
 * lets an interrupted change be repeated.
 */
export async function requirePassword(options: RequirePasswordOptions): Promise<void> {
  const { cluster, user, connectionString, password } = options
  const path = join(cluster, 'pg_hba.conf')
  if ((await readFile(path, 'utf8')) === authentication) return

  const client = new pg.Client({ connectionString, application_name: 'berth start' })
  await client.connect()
  try {
    await client.query(`alter role berth password ${pg.escapeLiteral(password)}`)
    const unfinished = `${path}.new`
    await writeFile(unfinished, authentication, { mode: 0o600 })
    if (user) await chown(unfinished, user.uid, user.gid)
    await rename(unfinished, path)
    await client.query('select pg_reload_conf()')
  } finally {
    await client.end()
  }
}
