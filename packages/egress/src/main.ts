import { createLogger } from '@berth/runtime/process/logger.ts'
import { Shutdown } from '@berth/runtime/process/shutdown.ts'
import { isServed } from '@berth/runtime/process/unix-socket.ts'
import { createApp } from './app.ts'
import { type EgressConfig, readConfig } from './config.ts'
import { removeStaleSocket } from './machines/socket-files.ts'
import { WorkerPool } from './workers/worker-pool.ts'

/** The process that the server controls. It carries no traffic, but starts and replaces the workers that do. */

const stopLimitMilliseconds = 5_000

// Sockets are the only files that egress creates. They are inaccessible to others until their mode is set.
process.umask(0o177)
// The server that reads this log may end first.
process.stderr.on('error', () => {})

try {
  await start(readConfig(process.argv.slice(2)))
} catch (error) {
  process.stderr.write(`egress: ${(error as Error).message}\n`)
  process.exit(1)
}

async function start({ controlSocket, workers: count, logLevel, logsJson, build }: EgressConfig): Promise<void> {
  const logger = createLogger({ name: 'egress', level: logLevel, json: logsJson })
  const shutdown = new Shutdown(logger)
  const workers = new WorkerPool({ logger, workers: count })
  const onEnd = (reason: string) => {
    logger.info(`stopping: ${reason}`)
    void shutdown.close().then(() => process.exit(0))
  }

  if (await isServed(controlSocket)) throw new Error(`another egress listens on ${controlSocket}.`)
  await removeStaleSocket(controlSocket)
  await workers.start()
  const app = createApp({ workers, build, onEnd, logger })
  await app.listen({ path: controlSocket })
  // Closed last: while this socket exists, no other egress process takes over the machines' sockets.
  shutdown.add('the control socket', () => app.close())
  shutdown.add('the workers', () => workers.close())
  shutdown.onSignals(stopLimitMilliseconds)
  logger.info({ socket: controlSocket, build }, 'egress is ready')
}
