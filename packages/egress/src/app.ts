import {
  deleteEgressMachine,
  egressContractVersion,
  egressLifelinePath,
  getEgressState,
  postEgressEnd,
  postEgressProbe,
  putEgressMachine,
  putEgressPolicy,
} from '@berth/contract/egress/egress-endpoints.ts'
import { replyWithErrors } from '@berth/runtime/http/error-reply.ts'
import { acceptJsonBodies } from '@berth/runtime/http/json-body.ts'
import { mount } from '@berth/runtime/http/mount.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { type FastifyInstance, fastify } from 'fastify'
import { parsePolicy } from './guard/policy.ts'
import { OrphanWatch } from './orphan-watch.ts'
import type { WorkerPool } from './workers/worker-pool.ts'

const orphanLimitMilliseconds = 60_000

export interface AppOptions {
  readonly workers: Pick<WorkerPool, 'ids' | 'setPolicy' | 'put' | 'delete' | 'probe'>
  /** Distinguishes this build of egress from others. */
  readonly build: string
  /** Called when egress has to stop: either the server requested it, or nothing has used egress for a minute. */
  readonly onEnd: (reason: string) => void
  readonly logger: Logger
}

/** The control API, served on a socket that only berth can open. */
export function createApp({ workers, build, onEnd, logger }: AppOptions): FastifyInstance {
  const app = fastify({ forceCloseConnections: true })
  acceptJsonBodies(app)
  replyWithErrors(app, logger)

  let lifelines = 0
  const orphanWatch = new OrphanWatch({
    limitMilliseconds: orphanLimitMilliseconds,
    isNeeded: () => lifelines > 0 || workers.ids.length > 0,
    onOrphaned: () => onEnd('egress is no longer in use'),
  })
  app.addHook('onReady', async () => orphanWatch.check())
  app.addHook('onClose', async () => orphanWatch.stop())

  mount(app, putEgressPolicy, ({ body }) => {
    parsePolicy(body)
    return workers.setPolicy(body)
  })
  mount(app, putEgressMachine, async ({ params, body }) => {
    await workers.put(params.machine_id, body)
    orphanWatch.check()
  })
  mount(app, deleteEgressMachine, async ({ params }) => {
    await workers.delete(params.machine_id)
    orphanWatch.check()
  })
  mount(app, postEgressProbe, ({ body }) => workers.probe(body))
  mount(app, postEgressEnd, () => onEnd('requested by the server'))
  mount(app, getEgressState, () => ({
    contract_version: egressContractVersion,
    build,
    machines: [...workers.ids],
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
