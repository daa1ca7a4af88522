import { setTimeout as delay } from 'node:timers/promises'
import { Berth } from '../../e2e/testing/berth.ts'
import { findProcesses } from '../processes.ts'
import {
  type BenchSession,
  browserPart,
  recorderPart,
  type Service,
  type ServiceOptions,
  type Shape,
} from './service.ts'

interface CreatedSession {
  readonly session_id: string
  readonly cdp_ws_url: string
}

/** The order matters: egress runs in a sandbox whose command also contains egress. */
const parts: readonly (readonly [RegExp, string])[] = [
  [/packages\/egress/, 'egress'],
  [/^\S*\/chromium\/|^\S*chrome_crashpad/, browserPart],
  [/^\S*Xtigervnc /, 'display'],
  [/^\S*openbox /, 'window manager'],
  [/^\S*ffmpeg /, recorderPart],
  [/^\/opt\/berth\/node /, 'agent'],
  [/^\S*bwrap /, 'sandbox'],
  [/postgres/, 'database'],
]

/** Starts berth like a user, with a data folder of its own. */
export async function startBerth({ pagesAddress }: ServiceOptions): Promise<Service> {
  const environment = { BERTH_EGRESS_ALLOW: pagesAddress }
  return serviceOf(await Berth.start({ environment, isOwnGroup: true }))
}

/** The same service with ready machines. */
export interface ReadyBerth extends Service {
  readonly berth: Berth
  /** Resolves when that many machines of each kind are ready. */
  filled(): Promise<void>
  /** How many sessions are frozen. */
  countFrozen(): Promise<number>
}

export async function startReadyBerth(
  pagesAddress: string,
  sizes: Readonly<Record<string, number>>,
): Promise<ReadyBerth> {
  const BERTH_RESERVE = Object.entries(sizes)
    .map(([kind, count]) => `${kind}=${count}`)
    .join(',')
  const berth = await Berth.start({
    environment: { BERTH_EGRESS_ALLOW: pagesAddress, BERTH_RESERVE },
    isOwnGroup: true,
  })
  const metric = (series: string) => readMetric(berth, series)
  return {
    ...serviceOf(berth),
    berth,
    countFrozen: () => metric('berth_sessions_frozen'),
    filled: () => untilFilled(berth, sizes),
  }
}

/** Resolves when the reserve has at least these numbers of ready machines, by kind. */
export async function untilFilled(berth: Berth, sizes: Readonly<Record<string, number>>): Promise<void> {
  const isFilled = async ([kind, count]: [string, number]) =>
    (await readMetric(berth, `berth_reserve_machines{kind="${kind}"}`)) >= count
  while ((await Promise.all(Object.entries(sizes).map(isFilled))).includes(false)) await delay(100)
}

export async function readMetric(berth: Berth, series: string): Promise<number> {
  const lines = (await (await berth.request('/metrics')).text()).split('\n')
  return Number(
    lines
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')
      .at(-1),
  )
}

function serviceOf(berth: Berth): Service {
  return {
    name: 'berth',
    create: (shape) => createSession(berth, shape),
    processes: async () => {
      const processes = await findProcesses(berth.dataFolder)
      return processes.map(({ pid, command }) => ({ pid, part: pid === berth.pid ? 'server' : partOf(command) }))
    },
    [Symbol.asyncDispose]: () => berth[Symbol.asyncDispose](),
  }
}

export async function createSession(berth: Berth, shape: Shape, settings: object = {}): Promise<BenchSession> {
  const body = JSON.stringify({ headless: shape === 'headless', timeout_seconds: 600, ...settings })
  const headers = { 'content-type': 'application/json' }
  const response = await send(berth, '/browsers', { method: 'POST', headers, body })
  const created = (await response.json()) as CreatedSession
  const path = `/browsers/${created.session_id}`
  return {
    cdpUrl: created.cdp_ws_url,
    read: { url: `${berth.url}${path}`, headers: { authorization: `Bearer ${berth.apiKey}` } },
    liveView: async () => ((await (await send(berth, `${path}/live_view`, {})).json()) as { url: string }).url,
    end: async () => {
      await send(berth, path, { method: 'DELETE' })
    },
  }
}

async function send(berth: Berth, path: string, init: RequestInit): Promise<Response> {
  const response = await berth.request(path, init)
  if (!response.ok)
    throw new Error(`${init.method ?? 'GET'} ${path} was answered with ${response.status}: ${await response.text()}`)
  return response
}

function partOf(command: string): string {
  return parts.find(([pattern]) => pattern.test(command))?.[1] ?? 'other'
}
