import { randomBytes } from 'node:crypto'
import { chown, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { readKeptFile } from '../host/kept-file.ts'
import type { ServiceUser } from '../host/service-user.ts'

/** What a connection has to show, by the first line that fits: there is one line. */
const authentication = `# Written by berth at each start. The password is in postgres-password of the data folder.
local all all scram-sha-256
`

/** Made once for a data folder. Not only the socket's folder stands between the database and a helper that was taken over. */
export function readPostgresPassword(dataFolder: string): Promise<string> {
  return readKeptFile(join(dataFolder, 'postgres-password'), () => randomBytes(24).toString('hex'))
}

export interface RequirePasswordOptions {
  readonly cluster: string
  readonly user: ServiceUser | undefined
  readonly connectionString: string
  readonly password: string
}

/**
 * Has a running PostgreSQL ask for the password. Clusters of earlier versions ask nobody for anything; that they are
 * changed in the end, by the rename, lets an interrupted change be made again.
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
