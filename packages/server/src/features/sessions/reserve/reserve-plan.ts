import { type ReserveKind, reserveKinds } from './reserve-kind.ts'

/** How many machines of each kind to keep. `auto` follows the rate of creates. */
export type ReserveConfig = 'off' | 'auto' | ReserveSizes

export type ReserveSizes = Readonly<Partial<Record<ReserveKind, number>>>

export interface PastCreate {
  readonly kind: ReserveKind
  /** Of a monotonic clock. */
  readonly milliseconds: number
}

interface PlanFacts {
  readonly creates: readonly PastCreate[]
  /** When an app last needed a machine, if one has. */
  readonly appMilliseconds?: number | undefined
  /** Of the same clock. */
  readonly nowMilliseconds: number
  /** The free memory of the host, and the memory that the reserve uses. */
  readonly freeBytes: number
}

const mebibyte = 1024 ** 2
/** The memory of a machine that has not shown a page yet. */
const machineBytes = { headless: 200 * mebibyte, headful: 350 * mebibyte, app: 120 * mebibyte }
/** With less free memory, `auto` keeps no machines. */
const minFreeBytes = 4096 * mebibyte
const memoryShare = 1 / 4
const memoryMilliseconds = 3 * 60_000
/**
 * Machines for apps are kept for this long after an app needed one. It is longer than apps stay warm, because only an
 * app that is not warm needs one.
 */
const appMemoryMilliseconds = 24 * 3_600_000
/** One machine is kept for this many creates in that time. */
const createsPerMachine = 3
const maxOfKind = 8
const commonKinds: readonly ReserveKind[] = ['headless', 'headful']

/** Drops creates that are too old to matter. */
export function recentCreates(creates: readonly PastCreate[], nowMilliseconds: number): readonly PastCreate[] {
  return creates.filter(({ milliseconds }) => nowMilliseconds - milliseconds < memoryMilliseconds)
}

/** The current target sizes of the reserve. */
export function planSizes(config: ReserveConfig, facts: PlanFacts): ReserveSizes {
  if (config === 'off') return {}
  if (config !== 'auto') return config
  if (facts.freeBytes < minFreeBytes) return {}
  const { creates, appMilliseconds = Number.NEGATIVE_INFINITY, nowMilliseconds } = facts
  const recent = recentCreates(creates, nowMilliseconds)
  const servesApps = nowMilliseconds - appMilliseconds < appMemoryMilliseconds
  const wanted = reserveKinds.map((kind) => {
    const created = recent.filter((create) => create.kind === kind).length
    const least = commonKinds.includes(kind) || (kind === 'app' && servesApps) ? 1 : 0
    return [kind, Math.min(maxOfKind, least + Math.ceil(created / createsPerMachine))] as const
  })
  return withinMemory(wanted, facts.freeBytes * memoryShare)
}

/** Gives each kind its first machine before any gets its second. */
function withinMemory(wanted: readonly (readonly [ReserveKind, number])[], bytes: number): ReserveSizes {
  const sizes: Partial<Record<ReserveKind, number>> = {}
  let left = bytes
  for (let size = 1; size <= maxOfKind; size++) {
    for (const [kind, count] of wanted) {
      const needed = bytesOf(kind)
      if (count < size || left < needed) continue
      sizes[kind] = (sizes[kind] ?? 0) + 1
      left -= needed
    }
  }
  return sizes
}

/** The approximate memory of the reserve. */
export function reserveBytes(kinds: readonly ReserveKind[]): number {
  return kinds.reduce((bytes, kind) => bytes + bytesOf(kind), 0)
}

function bytesOf(kind: ReserveKind): number {
  if (kind === 'app') return machineBytes.app
  return kind.startsWith('headless') ? machineBytes.headless : machineBytes.headful
}

/** Parses `off`, `auto`, or counts such as `headless=2,headful=1`. Undefined for anything else. */
export function parseReserve(text: string): ReserveConfig | undefined {
  if (text === 'off' || text === 'auto') return text
  const sizes: Partial<Record<ReserveKind, number>> = {}
  for (const part of text.split(',')) {
    const [, name = '', count = ''] = /^\s*([a-z-]+)=(\d{1,3})\s*$/.exec(part) ?? []
    const kind = reserveKinds.find((one) => one === name)
    if (!kind || kind in sizes) return undefined
    sizes[kind] = Number(count)
  }
  return sizes
}
