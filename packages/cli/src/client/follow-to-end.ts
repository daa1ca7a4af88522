import { setTimeout as delay } from 'node:timers/promises'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import pc from 'picocolors'
import type { ApiClient } from '../api/api-client.ts'
import { ApiFailure, LostConnection } from '../api/api-failure.ts'
import type { OutputFormat } from '../api/print-reply.ts'
import { printLine } from '../output.ts'

export interface AppStatus {
  readonly id: string
  readonly status: string
  readonly status_reason?: string
  readonly output?: string
}

export type AppEvent =
  | { readonly event: 'log'; readonly message: string; readonly timestamp: string }
  | { readonly event: 'deployment_state'; readonly deployment: AppStatus }
  | { readonly event: 'invocation_state'; readonly invocation: AppStatus }
  | {
      readonly event: 'app_version_summary'
      readonly app_name: string
      readonly version: string
      readonly actions: readonly { readonly name: string }[]
    }
  | { readonly event: 'sse_heartbeat' }

const reconnectLimitMilliseconds = 60_000
const pauseMilliseconds = 1_000

interface FollowOptions {
  readonly since?: string
  readonly signal?: AbortSignal
  /** Called when the stream is open. */
  readonly onOpen?: () => void
}

/**
 * Yields the events of a deployment or an invocation. If the connection breaks because a server stops or is replaced, a
 * new connection continues after the last event.
 */
export async function* followAcross(
  client: ApiClient,
  stream: Endpoint,
  id: string,
  { since, signal, onOpen }: FollowOptions = {},
): AsyncGenerator<AppEvent, void, void> {
  const place = new LastLine(since)
  let lostAt: number | undefined
  for (let hasBegun = false; ; ) {
    try {
      const request = {
        params: { id },
        query: { ...(place.since && { since: place.since }) },
        ...(signal && { signal }),
      }
      const response = await client.send(stream, request)
      onOpen?.()
      place.begin()
      for await (const event of client.eventsOf<AppEvent>(response, signal)) {
        hasBegun = true
        lostAt = undefined
        if (!place.isNew(event)) continue
        yield event
        if (isLast(event)) return
      }
      if (!hasBegun) return
    } catch (error) {
      if (!(error instanceof LostConnection) || !hasBegun) throw error
      if (lostAt === undefined) printLine(`${error.message}; reconnecting`)
      lostAt ??= performance.now()
      if (performance.now() - lostAt > reconnectLimitMilliseconds) throw error
    }
    await delay(pauseMilliseconds, undefined, { ...(signal && { signal }) })
  }
}

/** The position up to which a log was read. Several lines may have the same time. */
class LastLine {
  readonly #since: string | undefined
  #time: string | undefined
  #seen = 0
  #skipped = 0

  constructor(since: string | undefined) {
    this.#since = since
  }

  /** The time at which the next connection starts. */
  get since(): string | undefined {
    return this.#time ?? this.#since
  }

  begin(): void {
    this.#skipped = 0
  }

  isNew(event: AppEvent): boolean {
    if (event.event !== 'log') return true
    if (event.timestamp !== this.#time) {
      this.#time = event.timestamp
      this.#seen = 0
      this.#skipped = 0
    } else if (this.#skipped < this.#seen) {
      this.#skipped += 1
      return false
    }
    this.#seen += 1
    this.#skipped = this.#seen
    return true
  }
}

function isLast(event: AppEvent): boolean {
  if (event.event === 'deployment_state') return ['failed', 'stopped'].includes(event.deployment.status)
  return event.event === 'invocation_state' && ['succeeded', 'failed'].includes(event.invocation.status)
}

/** Prints the events of a deployment or an invocation until it has ended. */
export async function followToEnd(
  client: ApiClient,
  stream: Endpoint,
  id: string,
  output: OutputFormat,
): Promise<void> {
  for await (const event of followAcross(client, stream, id)) {
    if (output === 'json' && event.event !== 'sse_heartbeat') process.stdout.write(`${JSON.stringify(event)}\n`)
    else if (event.event === 'log') process.stderr.write(`${pc.dim(event.message)}\n`)
    else if (event.event === 'app_version_summary') {
      printLine(`${event.app_name} ${event.version}: ${event.actions.map(({ name }) => name).join(', ')}`)
    }
    if (event.event !== 'deployment_state' && event.event !== 'invocation_state') continue
    const state = event.event === 'deployment_state' ? event.deployment : event.invocation
    if (output === 'table') printLine(`${state.id}: ${state.status}`)
    if (['running', 'stopped'].includes(state.status) && event.event === 'deployment_state')
      return finish(state, output)
    if (['succeeded', 'failed'].includes(state.status)) return finish(state, output)
  }
  throw new ApiFailure(`the event stream of ${id} ended early`, 'software')
}

export function finish({ id, status, status_reason: reason, output: result }: AppStatus, output: OutputFormat): void {
  if (status === 'failed' || status === 'stopped') {
    throw new ApiFailure(`${id} has ${status}: ${reason ?? 'unknown reason'}${result ? ` ${result}` : ''}`, 'software')
  }
  if (output === 'table' && result !== undefined) process.stdout.write(`${result}\n`)
}
