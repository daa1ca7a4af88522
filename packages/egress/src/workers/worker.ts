import type { EgressProbeResult } from '@berth/contract/egress/egress-endpoints.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import type { EgressLogger } from '../egress-logger.ts'
import { Guard } from '../guard/guard.ts'
import { HostAddresses } from '../guard/host-addresses.ts'
import { parsePolicy } from '../guard/policy.ts'
import { Machines } from '../machines/machines.ts'
import { HostFiles } from '../names/host-files.ts'
import { NameResolver } from '../names/name-resolver.ts'
import { probeProxy } from '../probe.ts'
import type { NumberedRequest, WorkerMessage, WorkerRequest } from './worker-messages.ts'

/** A process that serves some of the machines. It ends together with its parent, and only then. */

const levels = ['trace', 'debug']
const [level = 'info'] = process.argv.slice(2)

// Sockets are the only files that egress creates. They are inaccessible to others until their mode is set.
process.umask(0o177)

const logger: EgressLogger = {
  debug: (facts, message) => {
    if (levels.includes(level)) send({ type: 'log', level: 'debug', facts, message })
  },
  error: ({ err, ...facts }, message) => {
    const stack = err instanceof Error ? { stack: err.stack } : {}
    send({ type: 'log', level: 'error', facts: { ...facts, ...stack }, message })
  },
}
const guard = new Guard({ hostAddresses: new HostAddresses(systemClock) })
const source = new HostFiles(systemClock)
const createNames = () => new NameResolver({ source, clock: systemClock })
const names = createNames()
const machines = new Machines({ guard, createNames, logger })

process.on('message', ({ number, request }: NumberedRequest) => {
  serve(request).then(
    (result) => send({ type: 'done', number, ...(result && { result }) }),
    (error: Error) => send({ type: 'failed', number, reason: error.message }),
  )
})
// Without its parent, a worker would apply outdated settings.
process.on('disconnect', () => void machines.close().finally(() => process.exit(0)))
// The parent ends its workers after it has stopped serving machines.
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => {})
// An unexpected error affects one connection. The others continue.
process.on('uncaughtException', (err) => logger.error({ err }, 'unexpected error'))
process.on('unhandledRejection', (err) => logger.error({ err }, 'unexpected error'))
send({ type: 'ready' })

async function serve(request: WorkerRequest): Promise<EgressProbeResult | undefined> {
  switch (request.do) {
    case 'set-policy':
      guard.setPolicy(parsePolicy(request.policy))
      return undefined
    case 'put-machine':
      await machines.put(request.id, request.route)
      return undefined
    case 'delete-machine':
      await machines.delete(request.id)
      return undefined
    case 'probe':
      return probeProxy(request.probe, { guard, names, logger })
  }
}

function send(message: WorkerMessage): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}
