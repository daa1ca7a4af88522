import { setTimeout as pause } from 'node:timers/promises'
import { agentOperationsPath } from '@berth/contract/agent/agent-protocol.ts'
import type { Operation } from '@berth/contract/agent/operation.ts'
import { curl } from '@berth/contract/agent/operations/curl-operations.ts'
import { executePlaywrightCode } from '@berth/contract/agent/operations/playwright-operations.ts'
import { BrowserRequest } from '@berth/contract/browsers/browser.ts'
import type { ProjectId, ProxyId, SessionId } from '@berth/contract/common/ids.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import { BerthError, type ErrorCode } from '@berth/contract/errors.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { z } from 'zod'
import { AgentRefusal, type CommandOptions } from '../../../agent-link/command-agent.ts'
import type { ProxyService } from '../../proxies/proxy-service.ts'
import type { SessionService } from '../../sessions/session-service.ts'
import type { Configuration } from '../analysis.ts'
import { browserOf } from '../configurations.ts'
import type { StoredAnalysis } from '../stored-analysis.ts'

/** A session that is not ended, because its server was killed, times out after this. */
const idleSeconds = 30
const scriptSeconds = 90
/** The lengths of the waits for a free slot, as multiples of the pause. */
const waitsForRoom = [1, 2, 5, 10, 20]
/** Errors that pass when another session ends. */
const capacityErrors: readonly ErrorCode[] = ['session_limit_reached', 'capacity_exhausted', 'egress_unavailable']
const tagName = 'berth.analysis'

/** Sends commands to the agents of sessions. */
interface Agents {
  command<Body extends z.ZodType, Reply extends z.ZodType>(
    id: SessionId,
    endpoint: Endpoint<z.ZodType, z.ZodType, Body, Reply>,
    body: z.input<Body>,
    options?: CommandOptions,
  ): Promise<z.output<Reply>>
}

interface AnalysisSessionsOptions {
  readonly createSession: (
    projectId: ProjectId,
    request: BrowserRequest,
    signal: AbortSignal,
  ) => Promise<{ readonly id: SessionId }>
  readonly sessions: SessionService
  readonly agents: Agents
  readonly proxies: ProxyService
  readonly pauseMilliseconds: number
  readonly logger: Logger
}

/** The part of a session that analyses use. */
export interface AnalysisSession {
  run<Result extends z.ZodType>(code: string, result: Result): Promise<z.output<Result>>
  /** Sends the request from the browser: through its proxy, and checked by egress. */
  fetch(url: string): Promise<{ readonly status: number; readonly body: string }>
}

/** The sessions of analyses: ordinary sessions of the caller's project, which are always ended. */
export class AnalysisSessions {
  readonly #options: AnalysisSessionsOptions

  constructor(options: AnalysisSessionsOptions) {
    this.#options = options
  }

  async use<Result>(
    analysis: StoredAnalysis,
    configuration: Configuration,
    { signal, work }: { readonly signal: AbortSignal; readonly work: (session: AnalysisSession) => Promise<Result> },
  ): Promise<Result> {
    const { sessions, proxies } = this.#options
    const projectId = analysis.project_id
    const proxyId = await this.#makeProxy(analysis, configuration)
    let id: SessionId | undefined
    try {
      const request = BrowserRequest.parse({
        ...browserOf(configuration),
        timeout_seconds: idleSeconds,
        tags: { [tagName]: analysis.id },
        proxy: proxyId === undefined ? { mode: 'direct' } : { id: proxyId },
      })
      id = await this.#start(analysis, request, signal)
      signal.throwIfAborted()
      return await work(this.#session(id, signal))
    } finally {
      if (id !== undefined) await sessions.delete(projectId, id).catch((error: unknown) => this.#leave(error))
      if (proxyId !== undefined) await proxies.delete(projectId, proxyId).catch((error: unknown) => this.#leave(error))
    }
  }

  /** Ends the sessions that a killed server left of the analysis. */
  async endLeftovers({ id, project_id: projectId }: Pick<StoredAnalysis, 'id' | 'project_id'>): Promise<void> {
    const { sessions, proxies } = this.#options
    const page = { limit: 100, offset: 0 }
    const left = await sessions.list(
      { projectId, status: 'active', text: undefined, tags: { [tagName]: id }, region: undefined },
      page,
    )
    for (const session of left.items) await sessions.delete(projectId, session.id).catch(ignoreMissing)
    const leftProxies = await proxies.list({ projectId, text: undefined, name: proxyName(id) }, page)
    for (const proxy of leftProxies.items) await proxies.delete(projectId, proxy.id).catch(ignoreMissing)
  }

  async #makeProxy({ id, project_id }: StoredAnalysis, { proxy }: Configuration): Promise<ProxyId | undefined> {
    if (!proxy) return undefined
    const { type, country } = proxy
    const made = await this.#options.proxies.create(project_id, {
      type,
      name: proxyName(id),
      protocol: 'https',
      config: { ...(country !== undefined && { country }) },
    })
    return made.id
  }

  async #start({ project_id }: StoredAnalysis, request: BrowserRequest, signal: AbortSignal): Promise<SessionId> {
    for (const pauses of [...waitsForRoom, undefined]) {
      try {
        return (await this.#options.createSession(project_id, request, signal)).id
      } catch (error) {
        const mayHelp = error instanceof BerthError && capacityErrors.includes(error.code)
        if (pauses === undefined || !mayHelp) throw error
      }
      await pause(pauses * this.#options.pauseMilliseconds, undefined, { signal })
    }
    throw new Error('unreachable')
  }

  #session(id: SessionId, signal: AbortSignal): AnalysisSession {
    const { agents } = this.#options
    // A cancellation does not wait for the page: its session is ended.
    const orAborted = <Value>(promise: Promise<Value>) => Promise.race([promise, aborted(signal)])
    return {
      run: async (code, result) => {
        const body = { code, timeout_sec: scriptSeconds }
        const limit = { limitMilliseconds: (scriptSeconds + 10) * 1000 }
        const answer = await orAborted(agents.command(id, ofAgent(executePlaywrightCode), body, limit))
        if (!answer.success) throw new ScriptFailure(String(answer.error).slice(0, 300))
        const parsed = result.safeParse(answer.result)
        if (!parsed.success) throw new ScriptFailure('the session responds with something else')
        return parsed.data
      },
      fetch: async (url) => {
        const body = { url, timeout_ms: 15_000 }
        return orAborted(agents.command(id, ofAgent(curl), body, { limitMilliseconds: 20_000 }))
      },
    }
  }

  /** It ends by its timeout or with the next server. */
  #leave(error: unknown): void {
    if (isMissing(error)) return
    this.#options.logger.warn({ err: error }, 'could not end a session of an analysis; it ends by its timeout')
  }
}

/** The browser or its helper programs failed. */
export class ScriptFailure extends Error {}

/** Whether the session caused the error, so that another one may succeed. */
export function isOfSession(error: unknown): boolean {
  if (error instanceof ScriptFailure || error instanceof AgentRefusal) return true
  const codes: readonly ErrorCode[] = ['session_unreachable', 'session_not_found', 'session_start_failed']
  return error instanceof BerthError && codes.includes(error.code)
}

function ofAgent<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType, Reply extends z.ZodType>(
  operation: Operation<Params, Query, Body, Reply>,
) {
  return { ...operation, path: `${agentOperationsPath}${operation.agentPath}` as const }
}

function proxyName(id: string): string {
  return `analysis ${id}`
}

function isMissing(error: unknown): boolean {
  return error instanceof BerthError && error.status === 404
}

function ignoreMissing(error: unknown): void {
  if (!isMissing(error)) throw error
}

async function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
