import { randomUUID } from 'node:crypto'
import { access, constants, readFile, stat } from 'node:fs/promises'
import { userInfo } from 'node:os'
import type { ProcessCommand } from '@berth/contract/agent/operations/process-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { OperationContext } from '../operations/served-operation.ts'
import { familyVariable, sessionEnvironment } from './process-environment.ts'

/** A validated command with everything needed to run it. */
export interface Command {
  /** All its descendant processes have this in their environment. */
  readonly id: string
  readonly program: string
  readonly args: readonly string[]
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
}

/** Validates the request against the machine, and completes it. */
export async function commandOf(request: ProcessCommand, context: OperationContext): Promise<Command> {
  await checkUser(request)
  const folder = request.cwd ?? context.config.home_folder
  await checkFolder(folder)
  const id = randomUUID()
  return {
    id,
    program: request.command,
    args: request.args,
    folder,
    environment: { ...(await sessionEnvironment(context)), PWD: folder, ...request.env, [familyVariable]: id },
  }
}

/** A machine has one user and cannot change to another: only a request for that user is accepted. */
async function checkUser({ as_root: asRoot, as_user: asUser }: ProcessCommand): Promise<void> {
  if (asRoot && asUser != null) {
    throw new BerthError('invalid_input', { reason: 'as_root: must not be combined with as_user.' })
  }
  if (asRoot)
    throw new BerthError('field_not_supported', { field: 'as_root', reason: 'there is no root in a session.' })
  if (asUser == null) return

  const { username, uid, gid } = userInfo()
  if ([username, `${uid}`, `${username}:${gid}`, `${uid}:${gid}`].includes(asUser)) return
  const [name = ''] = asUser.split(':')
  if (!(await listUsers()).some((user) => user.includes(name))) {
    throw new BerthError('invalid_input', { reason: `as_user: must be a user of the session: ${username} or ${uid}.` })
  }
  throw new BerthError('field_not_supported', {
    field: 'as_user',
    reason: `every program of a session runs as ${username} (${uid}:${gid}), who cannot become another user.`,
  })
}

/** Name and number of each user. */
async function listUsers(): Promise<readonly (readonly [string, string])[]> {
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n')
  return lines.map((line) => {
    const [name = '', , uid = ''] = line.split(':')
    return [name, uid]
  })
}

async function checkFolder(folder: string): Promise<void> {
  try {
    await access(folder, constants.X_OK)
    if ((await stat(folder)).isDirectory()) return
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    const what = code === 'EACCES' ? 'a folder that may be entered' : 'a folder that exists'
    throw new BerthError('invalid_input', { reason: `cwd: must be ${what}.` }, { cause })
  }
  throw new BerthError('invalid_input', { reason: 'cwd: must be a folder.' })
}
