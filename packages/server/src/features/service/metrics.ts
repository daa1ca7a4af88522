import type { FastifyInstance } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

interface MetricsSources {
  readonly activeSessions: () => Promise<number>
  readonly openRelays: () => number
  readonly memoryKills: () => number
}

/** Serves Prometheus metrics at `/metrics`: the process, the API by route, sessions and WebSockets. */
export function mountMetrics(app: FastifyInstance, sources: MetricsSources): void {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]

  const requests = new Histogram({
    name: 'berth_http_request_duration_seconds',
    help: 'Time from the head of a request to the end of its answer.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  })
  const errors = new Counter({
    name: 'berth_http_errors_total',
    help: 'Answers with a 5xx status.',
    labelNames: ['method', 'route'],
    registers,
  })
  new Gauge({
    name: 'berth_sessions_active',
    help: 'Active sessions, of all servers of this database.',
    registers,
    async collect() {
      // The other series stay useful without the database.
      const count = await sources.activeSessions().catch(() => undefined)
      if (count === undefined) this.reset()
      else this.set(count)
    },
  })
  new Gauge({
    name: 'berth_relayed_websockets',
    help: 'Websockets that this server passes on now.',
    registers,
    collect() {
      this.set(sources.openRelays())
    },
  })
  new Counter({
    name: 'berth_memory_kills_total',
    help: 'Processes of sessions that the kernel ended because their session had reached its memory limit.',
    registers,
    collect() {
      this.reset()
      this.inc(sources.memoryKills())
    },
  })

  app.addHook('onResponse', async (request, reply) => {
    // Uses the pattern of the route and not the URL: ids would create a series each, and queries contain tokens.
    const labels = { method: request.method, route: request.routeOptions.url ?? 'none' }
    requests.observe({ ...labels, status: reply.statusCode }, reply.elapsedTime / 1000)
    if (reply.statusCode >= 500) errors.inc(labels)
  })
  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
}
