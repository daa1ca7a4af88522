import { Berth } from '../../e2e/testing/berth.ts'
import { findProcesses } from '../processes.ts'
import { type BenchSession, browserPart, type Service, type ServiceOptions, type Shape } from './service.ts'

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
  [/^\/opt\/berth\/node /, 'agent'],
  [/^\S*bwrap /, 'sandbox'],
  [/postgres/, 'database'],
]

/** Starts berth like a user, with a data folder of its own. */
export async function startBerth({ pagesAddress }: ServiceOptions): Promise<Service> {
  const berth = await Berth.start({ environment: { BERTH_EGRESS_ALLOW: pagesAddress }, isOwnGroup: true })
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

async function createSession(berth: Berth, shape: Shape): Promise<BenchSession> {
  const body = JSON.stringify({ headless: shape === 'headless', timeout_seconds: 600 })
  const headers = { 'content-type': 'application/json' }
  const response = await send(berth, '/browsers', { method: 'POST', headers, body })
  const created = (await response.json()) as CreatedSession
  const path = `/browsers/${created.session_id}`
  return {
    cdpUrl: created.cdp_ws_url,
    read: { url: `${berth.url}${path}`, headers: { authorization: `Bearer ${berth.apiKey}` } },
    end: async () => {
      await send(berth, path, { method: 'DELETE' })
    },
  }
}

async function send(berth: Berth, path: string, init: RequestInit): Promise<Response> {
  const response = await berth.request(path, init)
  if (!response.ok)
    throw new Error(`${init.method} ${path} was answered with ${response.status}: ${await response.text()}`)
  return response
}

function partOf(command: string): string {
  return parts.find(([pattern]) => pattern.test(command))?.[1] ?? 'other'
}
