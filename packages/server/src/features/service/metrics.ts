import type { FastifyInstance } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

interface MetricsSources {
  readonly activeSessions: () => Promise<number>
  readonly openRelays: () => number
  readonly memoryKills: () => number
  readonly frozenSessions: () => number
  readonly returnedBytes: () => number
  readonly reserve: ReserveFigures
}

/** Statistics of the machines that are started in advance. */
interface ReserveFigures {
  readonly sizes: Readonly<Record<string, number>>
  readonly claims: ReadonlyMap<string, number>
  readonly misses: ReadonlyMap<string, number>
  readonly boots: { readonly count: number; readonly seconds: number }
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

  new Gauge({
    name: 'berth_sessions_frozen',
    help: 'Sessions of this server that are frozen because nobody uses them.',
    registers,
    collect() {
      this.set(sources.frozenSessions())
    },
  })
  new Counter({
    name: 'berth_standby_memory_returned_bytes_total',
    help: 'Memory that frozen sessions have given back to the host, where there is swap.',
    registers,
    collect() {
      this.reset()
      this.inc(sources.returnedBytes())
    },
  })
  addReserveMetrics(registers, sources.reserve)

  app.addHook('onResponse', async (request, reply) => {
    // Uses the pattern of the route and not the URL: ids would create a series each, and queries contain tokens.
    const labels = { method: request.method, route: request.routeOptions.url ?? 'none' }
    requests.observe({ ...labels, status: reply.statusCode }, reply.elapsedTime / 1000)
    if (reply.statusCode >= 500) errors.inc(labels)
  })
  app.get('/metrics', async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()))
}

/** Metrics of the machines that are started in advance. */
function addReserveMetrics(registers: Registry[], reserve: ReserveFigures): void {
  new Gauge({
    name: 'berth_reserve_machines',
    help: 'Machines of this server that wait for a session.',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const [kind, count] of Object.entries(reserve.sizes)) this.set({ kind }, count)
    },
  })
  new Counter({
    name: 'berth_reserve_claims_total',
    help: 'Creates that took a machine of the reserve.',
    labelNames: ['kind'],
    registers,
    collect() {
      this.reset()
      for (const [kind, count] of reserve.claims) this.inc({ kind }, count)
    },
  })
  new Counter({
    name: 'berth_reserve_misses_total',
    help: 'Creates that started a machine, by the reason why they took none of the reserve.',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset()
      for (const [reason, count] of reserve.misses) this.inc({ reason }, count)
    },
  })
  new Counter({
    name: 'berth_reserve_boots_total',
    help: 'Machines that were started for the reserve.',
    registers,
    collect() {
      this.reset()
      this.inc(reserve.boots.count)
    },
  })
  new Counter({
    name: 'berth_reserve_boot_seconds_total',
    help: 'How long it took until these machines were ready, together.',
    registers,
    collect() {
      this.reset()
      this.inc(reserve.boots.seconds)
    },
  })
}
