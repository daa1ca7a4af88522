export type Unit =
  | 'ms'
  | 'MiB'
  | 'MiB/s'
  | 'requests/s'
  | 'events/s'
  | 'ms of CPU'
  | 'bytes'
  | 'tokens'
  | 'calls'
  | 'tasks'

/** The measurements of one service under one name. */
export interface Figure {
  readonly name: string
  readonly service: string
  readonly unit: Unit
  readonly samples: number
  /** Half of the samples are at least this good. For rates, higher is better. */
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** All figures of a run, in the order of their first measurement. */
export class Figures {
  readonly #figures: Figure[] = []
  /** What readers need to know to interpret the figures. */
  readonly notes: string[] = []

  add(service: string, name: string, unit: Unit, samples: readonly number[]): void {
    if (samples.length === 0) return
    const isRate = unit.endsWith('/s')
    const sorted = samples.toSorted((first, second) => (isRate ? second - first : first - second))
    const [p50, p95, p99] = [quantile(sorted, 0.5), quantile(sorted, 0.95), quantile(sorted, 0.99)]
    this.#figures.push({ name, service, unit, samples: samples.length, p50, p95, p99 })
  }

  find(service: string, name: string): Figure | undefined {
    return this.#figures.find((figure) => figure.service === service && figure.name === name)
  }

  get all(): readonly Figure[] {
    return this.#figures
  }
}

/** Returns the nearest sample and never interpolates, so that each number in a report was measured. */
function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] as number
}
