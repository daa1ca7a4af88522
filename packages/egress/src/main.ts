import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { Shutdown } from '@berth/runtime/process/shutdown.ts'
import { isServed } from '@berth/runtime/process/unix-socket.ts'
import { createApp } from './app.ts'
import { type EgressConfig, readConfig } from './config.ts'
import { Guard } from './guard/guard.ts'
import { HostAddresses } from './guard/host-addresses.ts'
import { limitLookups, lookupOnHost } from './guard/lookup.ts'
import { Machines } from './machines.ts'
import { removeStaleSocket } from './socket-files.ts'

const stopLimitMilliseconds = 5_000
/** Of the probes; machines have limits of their own. */
const maxLookups = 8

// Lookups wait in threads, at most half of them; Node's four would let two slow names hold up all machines. Node makes
// the threads when it first needs one, which is after this.
process.env.UV_THREADPOOL_SIZE = '64'
// Sockets are the only files that egress makes. Until the mode of one is set, it is for nobody else.
process.umask(0o177)
// The server that reads our log may end, or be ended, before us.
process.stderr.on('error', () => {})

try {
  await start(readConfig(process.argv.slice(2)))
} catch (error) {
  process.stderr.write(`egress: ${(error as Error).message}\n`)
  process.exit(1)
}

async function start({ controlSocket, logLevel, logsJson, build }: EgressConfig): Promise<void> {
  const logger = createLogger({ name: 'egress', level: logLevel, json: logsJson })
  const shutdown = new Shutdown(logger)
  const guard = new Guard({ hostAddresses: new HostAddresses(systemClock) })
  const lookup = limitLookups(lookupOnHost, maxLookups)
  const machines = new Machines({ guard, lookup: lookupOnHost, logger })
  const onOrphaned = () => {
    logger.info('nobody needs egress any more')
    void shutdown.close().then(() => process.exit(0))
  }

  if (await isServed(controlSocket)) throw new Error(`another egress listens on ${controlSocket}.`)
  await removeStaleSocket(controlSocket)
  const app = createApp({ guard, machines, lookup, build, onOrphaned, logger })
  await app.listen({ path: controlSocket })
  // Closed last: while this socket is there, another egress does not take over those of the machines.
  shutdown.add('the control socket', () => app.close())
  shutdown.add('the machines', () => machines.close())
  shutdown.onSignals(stopLimitMilliseconds)
  logger.info({ socket: controlSocket, build }, 'egress is ready')
}
