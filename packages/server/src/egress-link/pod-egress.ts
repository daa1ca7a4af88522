import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { MachineId } from '@berth/contract/common/ids.ts'
import type { EgressPolicy, EgressProbe, EgressProbeResult } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { KeyedQueue } from '@berth/runtime/async/keyed-queue.ts'
import { retry } from '@berth/runtime/async/retry.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Machine } from '../drivers/driver.ts'
import { EgressClient } from './egress-client.ts'
import type { EgressLink, GentleChange, RoutedMachine } from './egress-link.ts'

const firstPauseMilliseconds = 50
const longestPauseMilliseconds = 2_000
/** 15 s together with the last pause. */
const patienceMilliseconds = 13_000

/** The egress of this host, which checks proxies. */
export type ProbingEgress = Pick<EgressLink, 'probe'> & {
  setPolicy(policy: Omit<EgressPolicy, 'own_session_socket'>): Promise<void>
}

class MachineIsGone extends Error {}

/** A machine with its own egress. */
interface MachineWithEgress extends Machine {
  connectEgress(): Promise<Duplex>
}

interface PodEgressOptions {
  readonly driver: { adopt(machineId: MachineId): Promise<MachineWithEgress | undefined> }
  readonly probing: ProbingEgress
  readonly logger: Logger
}

interface Route {
  readonly socket: RoutedMachine['egressSocket']
  settings: EgressSettings
  readonly closing: AbortController
}

/**
 * The egress processes of machines that are pods: each machine has its own. The cluster restarts one that exits, and
 * this class sends it its route again. The routes of machines that are gone need no cleanup.
 */
export class PodEgress implements EgressLink {
  readonly #options: PodEgressOptions
  readonly #routes = new Map<MachineId, Route>()
  /** Sends updates of a machine one at a time. The last one wins. */
  readonly #updates = new KeyedQueue<MachineId>()
  #policy: Omit<EgressPolicy, 'own_session_socket'> = { allow: [], own_addresses: [] }

  constructor(options: PodEgressOptions) {
    this.#options = options
  }

  async setPolicy(policy: Omit<EgressPolicy, 'own_session_socket'>): Promise<void> {
    this.#policy = policy
    await this.#options.probing.setPolicy(policy)
    // An egress that does not respond receives it later, with its route.
    await Promise.allSettled([...this.#routes.keys()].map((id) => this.#send(id)))
  }

  async openRoute({ id, egressSocket }: RoutedMachine, settings: EgressSettings): Promise<void> {
    const known = this.#routes.get(id)
    if (known) known.settings = settings
    else this.#routes.set(id, { socket: egressSocket, settings, closing: new AbortController() })
    await this.#sendWithRetries(id)
    const route = this.#routes.get(id)
    if (!known && route) void this.#followRestarts(id, route)
  }

  async closeRoute(machineId: MachineId): Promise<void> {
    this.#routes.get(machineId)?.closing.abort()
    this.#routes.delete(machineId)
  }

  async listRoutes(): Promise<readonly MachineId[]> {
    return [...this.#routes.keys()]
  }

  async setSettings(machineId: MachineId, settings: EgressSettings, gently?: GentleChange): Promise<void> {
    const route = this.#routes.get(machineId)
    if (!route) throw new BerthError('session_unreachable')
    route.settings = settings
    await this.#sendWithRetries(machineId, gently).catch((cause: unknown) => {
      throw new BerthError('egress_unavailable', undefined, { cause })
    })
  }

  probe(probe: EgressProbe): Promise<EgressProbeResult> {
    return this.#options.probing.probe(probe)
  }

  /** Detaches from all egress processes, which keep running. */
  close(): void {
    for (const { closing } of this.#routes.values()) closing.abort()
    this.#routes.clear()
  }

  /** Sends the route to each later process of the machine's egress, until the route is closed. */
  async #followRestarts(id: MachineId, route: Route): Promise<void> {
    const { signal } = route.closing
    for (let pause = firstPauseMilliseconds; !signal.aborted; pause = Math.min(pause * 2, longestPauseMilliseconds)) {
      try {
        const client = await this.#clientOf(id)
        const { ended } = await client.holdLifeline(signal)
        await ended
        if (signal.aborted) return
        this.#options.logger.warn(
          { machineId: id },
          'the egress of a machine has exited; sending the route to the next one',
        )
        pause = firstPauseMilliseconds
        await this.#sendWithRetries(id)
      } catch {
        // It does not exist yet, or is being removed with its machine.
      }
      await delay(pause, undefined, { signal }).catch(() => {})
    }
  }

  /** Retries until the machine is gone or its route is closed. */
  #sendWithRetries(id: MachineId, gently?: GentleChange): Promise<void> {
    return retry(() => this.#send(id, gently), {
      firstPauseMilliseconds,
      longestPauseMilliseconds,
      patienceMilliseconds,
      isTransient: (error) => !(error instanceof MachineIsGone) && this.#routes.has(id),
    })
  }

  /** Sends the current route. Does nothing if the route was closed meanwhile. */
  #send(id: MachineId, gently?: GentleChange): Promise<void> {
    return this.#updates.run(id, async () => {
      const route = this.#routes.get(id)
      if (!route) return
      const client = await this.#clientOf(id)
      await client.putPolicy(this.#policy)
      await client.putMachine(id, {
        socket_path: route.socket.path,
        socket_mode: route.socket.mode,
        settings: route.settings,
        ...(gently && { gently: { after_request_to: gently.afterRequestTo } }),
      })
    })
  }

  async #clientOf(id: MachineId): Promise<EgressClient> {
    const machine = await this.#options.driver.adopt(id)
    if (!machine) throw new MachineIsGone(`the machine ${id} is not there`)
    return new EgressClient(() => machine.connectEgress())
  }
}
