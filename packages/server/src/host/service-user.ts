import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { StartError } from '../start-error.ts'

const run = promisify(execFile)

/** The user of a helper program when berth itself runs as root. */
export interface ServiceUser {
  readonly uid: number
  readonly gid: number
}

/**
 * Each helper has its own user. Egress handles untrusted traffic, so a compromised egress must not own the files and
 * processes of the database.
 */
const userNames = { database: 'berth', egress: 'berth-egress' } as const

export type ServiceName = keyof typeof userNames

/** Undefined when berth runs as an ordinary user, which then runs the helpers too. */
export type ServiceUsers = Readonly<Record<ServiceName, ServiceUser | undefined>>

/** Finds or creates the users of all helpers. */
export async function openServiceUsers(): Promise<ServiceUsers> {
  // In sequence: useradd locks the files that it changes, and fails instead of waiting.
  return { database: await openServiceUser('database'), egress: await openServiceUser('egress') }
}

/** Finds or creates the user of one helper. */
export async function openServiceUser(service: ServiceName): Promise<ServiceUser | undefined> {
  if (process.geteuid?.() !== 0) return undefined

  const name = userNames[service]
  const existing = await findUser(name)
  if (existing) return existing
  const failure = await makeUser(name)
  // Another berth may have created the user meanwhile.
  const made = await findUser(name)
  if (made) return made
  throw new StartError(`The system user ${name} cannot be created: ${failure?.message ?? 'useradd did not add it'}`, 69)
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
