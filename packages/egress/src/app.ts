import {
  deleteEgressMachine,
  egressContractVersion,
  egressLifelinePath,
  getEgressState,
  postEgressProbe,
  putEgressMachine,
  putEgressPolicy,
} from '@berth/contract/egress/egress-endpoints.ts'
import { replyWithErrors } from '@berth/runtime/http/error-reply.ts'
import { acceptJsonBodies } from '@berth/runtime/http/json-body.ts'
import { mount } from '@berth/runtime/http/mount.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { type FastifyInstance, fastify } from 'fastify'
import type { Guard } from './guard/guard.ts'
import type { Lookup } from './guard/lookup.ts'
import { parsePolicy } from './guard/policy.ts'
import type { Machines } from './machines.ts'
import { OrphanWatch } from './orphan-watch.ts'
import { probeProxy } from './probe.ts'

const orphanLimitMilliseconds = 60_000

export interface AppOptions {
  readonly guard: Guard
  readonly machines: Machines
  readonly lookup: Lookup
  /** Tells this build of egress from another. */
  readonly build: string
  /** Called when nothing has needed egress for a minute. */
  readonly onOrphaned: () => void
  readonly logger: Logger
}

/** What the server says to egress, over a socket that only berth can open. */
export function createApp({ guard, machines, lookup, build, onOrphaned, logger }: AppOptions): FastifyInstance {
  const app = fastify({ forceCloseConnections: true })
  acceptJsonBodies(app)
  replyWithErrors(app, logger)

  let lifelines = 0
  const orphanWatch = new OrphanWatch({
    limitMilliseconds: orphanLimitMilliseconds,
    isNeeded: () => lifelines > 0 || machines.ids.length > 0,
    onOrphaned,
  })
  app.addHook('onReady', async () => orphanWatch.check())
  app.addHook('onClose', async () => orphanWatch.stop())

  mount(app, putEgressPolicy, ({ body }) => guard.setPolicy(parsePolicy(body)))
  mount(app, putEgressMachine, async ({ params, body }) => {
    await machines.put(params.machine_id, body)
    orphanWatch.check()
  })
  mount(app, deleteEgressMachine, async ({ params }) => {
    await machines.delete(params.machine_id)
    orphanWatch.check()
  })
  mount(app, postEgressProbe, ({ body }) => probeProxy(body, { guard, lookup, logger }))
  mount(app, getEgressState, () => ({
    contract_version: egressContractVersion,
    build,
    pid: process.pid,
    machines: [...machines.ids],
  }))

  app.get(egressLifelinePath, (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200).flushHeaders()
    lifelines += 1
    orphanWatch.check()
    reply.raw.once('close', () => {
      lifelines -= 1
      orphanWatch.check()
    })
  })
  return app
}
