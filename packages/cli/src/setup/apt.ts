import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Writable } from 'node:stream'
import type { SystemPackage } from '@berth/server/host-checks/system-packages.ts'
import { StartError } from '@berth/server/start-error.ts'
import { printLine } from '../output.ts'
import { AptProgress } from './apt-progress.ts'

const options = ['-y', '-o', 'APT::Status-Fd=3', '-o', 'DPkg::Lock::Timeout=600', '-o', 'Dpkg::Use-Pty=0']
// Progress lines are mixed with the others by a descriptor that the shell creates. sudo would close an inherited one,
// and apt closes the progress descriptor in its child processes, where packages that write to standard output would
// fail.
const withProgress = ['sh', '-c', 'exec "$0" "$@" 3>&1']
// Without these settings apt may ask a question and wait forever.
const withoutQuestions = ['env', 'DEBIAN_FRONTEND=noninteractive', 'LC_ALL=C.UTF-8']

/** Installs the packages as root and prints progress. Throws a StartError with apt's reason when it fails. */
export async function aptInstall(packages: readonly SystemPackage[], becomeRoot: readonly string[]): Promise<void> {
  for (const { name, reason } of packages) printLine(`installing ${name}: ${reason}`)
  const logPath = join(await mkdtemp(join(tmpdir(), 'berth-setup-')), 'apt.log')
  const log = createWriteStream(logPath)
  const aptGet = (args: readonly string[]) =>
    runLogged([...becomeRoot, ...withoutQuestions, ...withProgress, 'apt-get', ...options, ...args], log)
  const install = () => aptGet(['install', '--no-install-recommends', ...packages.map(({ name }) => name)])

  let result = await install()
  if (!result.hasSucceeded) {
    // Package lists are often absent (in new images) or outdated, and an interrupted install has to be finished first.
    printLine('updating the package lists')
    await runLogged([...becomeRoot, ...withoutQuestions, 'dpkg', '--configure', '-a'], log)
    const update = await aptGet(['update', '-o', 'APT::Update::Error-Mode=any'])
    result = await install()
    if (!result.hasSucceeded && !update.hasSucceeded) result = update
  }
  log.end()
  if (!result.hasSucceeded)
    throw new StartError(`apt could not install the packages: ${result.reason}. Complete output: ${logPath}`, 69)
  await rm(dirname(logPath), { recursive: true })
}

interface AptResult {
  readonly hasSucceeded: boolean
  /** The first error that apt reported. */
  readonly reason: string
}

async function runLogged([program = '', ...args]: readonly string[], log: Writable): Promise<AptResult> {
  log.write(`$ ${[program, ...args].join(' ')}\n`)
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const progress = new AptProgress(printLine)
  let reason: string | undefined
  const read = (line: string) => {
    if (line.startsWith('E: ')) reason ??= line.slice(3)
    if (!progress.read(line)) log.write(`${line}\n`)
  }
  createInterface({ input: child.stdout }).on('line', read)
  createInterface({ input: child.stderr }).on('line', read)
  const [exitCode] = await once(child, 'close')
  return { hasSucceeded: exitCode === 0, reason: reason ?? 'it gave no reason' }
}
