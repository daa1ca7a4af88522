import { once } from 'node:events'
import { get } from 'node:https'
import { text } from 'node:stream/consumers'
import type { KubeConfig } from '@kubernetes/client-node'

/** The API server's counters at one moment. */
export class ApiServerCounts {
  readonly requests: number
  readonly cpuSeconds: number
  readonly memoryBytes: number
  /** By verb: the number of requests within each limit in seconds. */
  readonly #durations: ReadonlyMap<string, ReadonlyMap<number, number>>

  constructor(metrics: string) {
    const samples = metrics.split('\n').flatMap((line) => {
      const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      return value === undefined ? [] : [{ name, labels, value: Number(value) }]
    })
    const sumOf = (name: string) =>
      samples.filter((sample) => sample.name === name).reduce((sum, { value }) => sum + value, 0)
    // Watches are open for minutes, and cause no load.
    const durations = new Map<string, Map<number, number>>()
    for (const { name, labels, value } of samples) {
      if (name !== 'apiserver_request_duration_seconds_bucket') continue
      const [, verb = ''] = /verb="(\w+)"/.exec(labels) ?? []
      const [, most = ''] = /le="([^"]+)"/.exec(labels) ?? []
      if (verb === 'WATCH' || verb === 'CONNECT') continue
      const limit = most === '+Inf' ? Number.POSITIVE_INFINITY : Number(most)
      const ofVerb = durations.get(verb) ?? new Map<number, number>()
      ofVerb.set(limit, (ofVerb.get(limit) ?? 0) + value)
      durations.set(verb, ofVerb)
    }
    this.#durations = durations
    this.requests = [...durations.values()].reduce(
      (sum, ofVerb) => sum + (ofVerb.get(Number.POSITIVE_INFINITY) ?? 0),
      0,
    )
    this.cpuSeconds = sumOf('process_cpu_seconds_total')
    this.memoryBytes = sumOf('process_resident_memory_bytes')
  }

  /** The number of requests since `before`, by verb. */
  byVerbSince(before: ApiServerCounts): readonly (readonly [string, number])[] {
    const count = (counts: ApiServerCounts, verb: string) =>
      counts.#durations.get(verb)?.get(Number.POSITIVE_INFINITY) ?? 0
    return [...this.#durations.keys()]
      .map((verb) => [verb, count(this, verb) - count(before, verb)] as const)
      .filter(([, requests]) => requests > 0)
  }

  /** The smallest bucket limit of the histogram that covers 99 % of requests since `before`, by verb. */
  p99Since(before: ApiServerCounts): readonly (readonly [string, number])[] {
    return [...this.#durations].flatMap(([verb, ofVerb]) => {
      const earlier = before.#durations.get(verb)
      const since = [...ofVerb].map(([limit, count]) => [limit, count - (earlier?.get(limit) ?? 0)] as const)
      const total = since.at(-1)?.[1] ?? 0
      const found = since.find(([, count]) => count >= total * 0.99)
      return total === 0 || found === undefined ? [] : [[verb, found[0]] as const]
    })
  }
}

export class ApiServerLoad {
  readonly #config: KubeConfig

  constructor(config: KubeConfig) {
    this.#config = config
  }

  async read(): Promise<ApiServerCounts> {
    const server = this.#config.getCurrentCluster()?.server ?? ''
    const options = {}
    await this.#config.applyToHTTPSOptions(options)
    const [response] = await once(get(`${server}/metrics`, options), 'response')
    return new ApiServerCounts(await text(response))
  }
}
