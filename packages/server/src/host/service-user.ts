import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { StartError } from '../start-error.ts'

const run = promisify(execFile)

/** A user under whom a helper program of berth runs when berth itself is root. */
export interface ServiceUser {
  readonly uid: number
  readonly gid: number
}

/**
 * Each helper has a user of its own. Egress speaks to strangers: whoever takes it over must not own the files and the
 * processes of the database.
 */
const userNames = { database: 'berth', egress: 'berth-egress' } as const

export type ServiceName = keyof typeof userNames

/** Undefined for an ordinary user, whose helper programs run under that same user. */
export type ServiceUsers = Readonly<Record<ServiceName, ServiceUser | undefined>>

/** Finds or makes the users of all helpers. */
export async function openServiceUsers(): Promise<ServiceUsers> {
  // One after the other: useradd locks the files that it changes, and refuses to wait.
  return { database: await openServiceUser('database'), egress: await openServiceUser('egress') }
}

/** Finds or makes the user of one helper. */
export async function openServiceUser(service: ServiceName): Promise<ServiceUser | undefined> {
  if (process.geteuid?.() !== 0) return undefined

  const name = userNames[service]
  const existing = await findUser(name)
  if (existing) return existing
  const failure = await makeUser(name)
  // Another berth may have made the user in the meantime.
  const made = await findUser(name)
  if (made) return made
  throw new StartError(`The system user ${name} cannot be made: ${failure?.message ?? 'useradd did not add it'}`, 69)
}

async function makeUser(name: string): Promise<Error | undefined> {
  const args = ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', name]
  return run('/usr/sbin/useradd', args).then(
    () => undefined,
    (error: Error) => error,
  )
}

async function findUser(name: string): Promise<ServiceUser | undefined> {
  return findInPasswd(await readFile('/etc/passwd', 'utf8'), name)
}

export function findInPasswd(passwd: string, user: string): ServiceUser | undefined {
  const [, , uid, gid] =
    passwd
      .split('\n')
      .find((line) => line.startsWith(`${user}:`))
      ?.split(':') ?? []
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
}
