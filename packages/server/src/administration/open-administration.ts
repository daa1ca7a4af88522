import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger, type Logger } from '@berth/runtime/process/logger.ts'
import { isServed } from '@berth/runtime/process/unix-socket.ts'
import type { ServerConfig } from '../config.ts'
import { mayPass, openDatabase } from '../database/database.ts'
import { EmbeddedPostgres } from '../database/embedded-postgres.ts'
import { migrate } from '../database/migrate.ts'
import { openHostFolders } from '../host/host-folders.ts'
import { dataFolderInUseExitCode, lockDataFolder } from '../host/lock-data-folder.ts'
import { openServiceUser } from '../host/service-user.ts'
import { StartError } from '../start-error.ts'
import { Administration } from './administration.ts'

type DatabaseLocation = Pick<ServerConfig, 'databaseUrl' | 'dataFolder' | 'userRuntimeFolder'>

const databaseLimitMilliseconds = 15_000
const pauseMilliseconds = 200

/**
 * Runs an operation of the operator on the database, with or without a running server. Without one, berth's own
 * PostgreSQL is started for the duration, and the data folder is locked meanwhile.
 */
export async function administer<Result>(
  where: DatabaseLocation,
  work: (administration: Administration) => Promise<Result>,
): Promise<Result> {
  const logger = createLogger({ name: 'berth', level: 'warn', json: false })
  if (where.databaseUrl !== undefined) return runOn(where.databaseUrl, logger, work)

  const folders = await openHostFolders(where)
  const socketFolder = join(folders.runtime, 'postgres')
  const postgres = new EmbeddedPostgres({
    dataFolder: folders.data,
    socketFolder,
    user: await openServiceUser('database'),
    logger,
  })
  const lock = await lockDataFolder(folders.data).catch(ignoreRunningServer)
  if (!lock) return runOn(await postgres.locate(), logger, work)
  // After a crash of the server, PostgreSQL still runs, and the next server uses it.
  const wasRunning = await isServed(join(socketFolder, '.s.PGSQL.5432'))
  try {
    await postgres.start()
    return await runOn(postgres.connectionString, logger, work)
  } finally {
    if (!wasRunning) await postgres.stop()
    lock.close()
  }
}

function ignoreRunningServer(error: unknown): undefined {
  if (error instanceof StartError && error.exitCode === dataFolderInUseExitCode) return undefined
  throw error
}

async function runOn<Result>(
  url: string,
  logger: Logger,
  work: (administration: Administration) => Promise<Result>,
): Promise<Result> {
  const database = openDatabase(url, logger)
  try {
    const end = systemClock.now().getTime() + databaseLimitMilliseconds
    // A server that has just started may not have its database yet.
    for (;;) {
      try {
        await migrate(database)
        break
      } catch (error) {
        if (!mayPass(error) || systemClock.now().getTime() > end) throw error
        await delay(pauseMilliseconds)
      }
    }
    return await work(new Administration(database, systemClock))
  } finally {
    await database.destroy()
  }
}
