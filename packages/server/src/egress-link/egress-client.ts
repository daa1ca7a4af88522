import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  deleteEgressMachine,
  type EgressProbe,
  type EgressProbeResult,
  egressLifelinePath,
  getEgressState,
  postEgressEnd,
  postEgressProbe,
  putEgressMachine,
  putEgressPolicy,
} from '@berth/contract/egress/egress-endpoints.ts'
import { type Endpoint, filledPath } from '@berth/contract/endpoint.ts'
import type { z } from 'zod'

const answerLimitMilliseconds = 5_000
/** Longer than egress's own time limit. */
const probeLimitMilliseconds = 25_000

type EgressState = z.output<NonNullable<typeof getEgressState.reply>>

/** Calls the control API of egress. */
export class EgressClient {
  readonly #connect: () => Promise<Duplex>

  /** Each call uses a separate connection. */
  constructor(connect: () => Promise<Duplex>) {
    this.#connect = connect
  }

  async state(): Promise<EgressState> {
    return (getEgressState.reply as NonNullable<typeof getEgressState.reply>).parse(await this.#call(getEgressState))
  }

  /** Asks egress to stop. It exits shortly after its response. */
  async end(): Promise<void> {
    await this.#call(postEgressEnd)
  }

  async putPolicy(policy: z.input<NonNullable<typeof putEgressPolicy.body>>): Promise<void> {
    await this.#call(putEgressPolicy, {}, policy)
  }

  async putMachine(machineId: string, route: z.input<NonNullable<typeof putEgressMachine.body>>): Promise<void> {
    await this.#call(putEgressMachine, { machine_id: machineId }, route)
  }

  async deleteMachine(machineId: string): Promise<void> {
    await this.#call(deleteEgressMachine, { machine_id: machineId })
  }

  async probe(probe: EgressProbe): Promise<EgressProbeResult> {
    const result = await this.#call(postEgressProbe, {}, probe, probeLimitMilliseconds)
    return (postEgressProbe.reply as NonNullable<typeof postEgressProbe.reply>).parse(result)
  }

  /** Resolves with a promise that settles when egress exits. */
  async holdLifeline(signal: AbortSignal): Promise<{ readonly ended: Promise<void> }> {
    const response = await this.#send('GET', egressLifelinePath, undefined, signal)
    response.resume()
    return {
      ended: once(response, 'close').then(
        () => undefined,
        () => undefined,
      ),
    }
  }

  async #call(
    endpoint: Pick<Endpoint, 'method' | 'path'>,
    params: Record<string, string> = {},
    body?: unknown,
    limitMilliseconds = answerLimitMilliseconds,
  ): Promise<unknown> {
    const path = filledPath(endpoint.path, params)
    const response = await this.#send(endpoint.method, path, body, AbortSignal.timeout(limitMilliseconds))
    const text = await new Response(response).text()
    if ((response.statusCode ?? 500) >= 400) throw new Error(`egress rejected ${endpoint.method} ${path}: ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }

  async #send(method: string, path: string, body: unknown, signal: AbortSignal): Promise<IncomingMessage> {
    const headers = { host: 'egress', ...(body !== undefined && { 'content-type': 'application/json' }) }
    const connection = await this.#connect()
    const request = httpRequest({ createConnection: () => connection, method, path, headers, signal })
    request.end(body === undefined ? undefined : JSON.stringify(body))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return response
  }
}
