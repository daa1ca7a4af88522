import type { Endpoint } from '@berth/contract/endpoint.ts'
import pc from 'picocolors'
import type { ApiClient } from '../api/api-client.ts'
import { ApiFailure } from '../api/api-failure.ts'
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

/** Prints the events of a deployment or an invocation until it has ended. */
export async function followToEnd(
  client: ApiClient,
  stream: Endpoint,
  id: string,
  output: OutputFormat,
): Promise<void> {
  for await (const event of client.follow<AppEvent>(stream, { params: { id } })) {
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
  throw new ApiFailure(`the events of ${id} ended before it did`, 'software')
}

export function finish({ id, status, status_reason: reason, output: result }: AppStatus, output: OutputFormat): void {
  if (status === 'failed' || status === 'stopped') {
    throw new ApiFailure(
      `${id} has ${status}: ${reason ?? 'no reason is known'}${result ? ` ${result}` : ''}`,
      'software',
    )
  }
  if (output === 'table' && result !== undefined) process.stdout.write(`${result}\n`)
}
