import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inPod, podPorts } from '@berth/contract/agent/machine/machine-pod.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { Shutdown } from '@berth/runtime/process/shutdown.ts'
import { createApp } from '../app.ts'
import { WorkerPool } from '../workers/worker-pool.ts'
import { openGateway } from './gateway.ts'

/**
 * The process of a pod's egress container: outgoing connections of the machine beside it, and incoming ones from
 * servers.
 */

const stopLimitMilliseconds = 1_000

// Sockets are inaccessible to others until their mode is set.
process.umask(0o177)
const logger = createLogger({ name: 'egress', level: 'info', json: true })
const shutdown = new Shutdown(logger)
shutdown.onSignals(stopLimitMilliseconds)
process.umask(0o077)
const controlSocket = join(await mkdtemp(join(tmpdir(), 'egress-')), 'control.sock')
process.umask(0o177)
const workers = new WorkerPool({ logger, workers: 1, hasSpare: false })
// The cluster restarts this container and ends it with its pod, so nothing has to end it here.
const app = createApp({ workers, build: 'pod', onEnd: () => {}, logger })
await app.listen({ path: controlSocket })
shutdown.add('the workers', () => workers.close())
shutdown.add('the control socket', () => app.close())
const gateway = await openGateway({ identityFolder: inPod.identity, controlSocket, port: podPorts.servers, logger })
shutdown.add('the gateway', () => gateway.close())
logger.info({ port: podPorts.servers }, 'egress is ready')
