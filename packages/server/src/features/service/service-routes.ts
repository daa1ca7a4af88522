import { getHealth, getStatus } from '@berth/contract/service/service-endpoints.ts'
import { mount } from '@berth/runtime/http/mount.ts'
import type { FastifyInstance } from 'fastify'
import type { ServiceHealth } from './service-health.ts'

/** Public endpoints that report whether the service works. */
export function mountServiceRoutes(app: FastifyInstance, health: ServiceHealth, isLeaving: () => boolean): void {
  mount(app, getHealth, () => health.check())

  // For load balancers, which only check the status.
  app.get('/health/ready', async (_request, reply) => {
    const problem = isLeaving() ? 'the server is about to end' : await health.findObstacle()
    return reply
      .status(problem === undefined ? 200 : 503)
      .send({ ready: problem === undefined, problem: problem ?? null })
  })

  mount(app, getStatus, async () => {
    const { database, driver, egress } = await health.check()
    const components = [
      { name: 'API', status: operational(true) },
      { name: 'Database', status: operational(database === 'ok') },
      { name: 'Browser machines', status: operational(driver === 'ok') },
      { name: 'Egress', status: operational(egress === 'ok') },
    ]
    const allWork = components.every((component) => component.status === 'operational')
    const status = allWork ? ('operational' as const) : ('partial_outage' as const)
    return { status, groups: [{ name: 'berth', status, components }] }
  })
}

function operational(works: boolean): 'operational' | 'full_outage' {
  return works ? 'operational' : 'full_outage'
}
