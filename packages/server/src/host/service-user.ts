import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { StartError } from '../start-error.ts'

const run = promisify(execFile)

/** The user under whom berth's helper programs run when berth itself is root. */
export interface ServiceUser {
  readonly uid: number
  readonly gid: number
}

const name = 'berth'

/** Finds or makes the user. Undefined for an ordinary user, whose helper programs run under that same user. */
export async function openServiceUser(): Promise<ServiceUser | undefined> {
  if (process.geteuid?.() !== 0) return undefined

  const existing = await findUser()
  if (existing) return existing
  const failure = await makeUser()
  // Another berth may have made the user in the meantime.
  const made = await findUser()
  if (made) return made
  throw new StartError(`The system user ${name} cannot be made: ${failure?.message ?? 'useradd did not add it'}`, 69)
}

async function makeUser(): Promise<Error | undefined> {
  const args = ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', name]
  return run('/usr/sbin/useradd', args).then(
    () => undefined,
    (error: Error) => error,
  )
}

async function findUser(): Promise<ServiceUser | undefined> {
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
