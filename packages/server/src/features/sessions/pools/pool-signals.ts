import { EventEmitter } from 'node:events'
import type { PoolId, SessionId } from '@berth/contract/common/ids.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { type RawBuilder, sql } from 'kysely'
import { z } from 'zod'
import { NotificationListener } from '../../../database/notification-listener.ts'
import type { SessionState } from '../records/session-state.ts'

const channel = 'berth_pools'

/** A change of a browser of a pool, or of a caller that waits for one. */
export interface PoolChange {
  readonly pool: PoolId
  readonly state: SessionState | 'removed' | 'waiter left'
  readonly session?: SessionId | undefined
  /** The server that has the session's machine. */
  readonly server?: string | undefined
}

interface PoolSignalMap {
  changed: [change: PoolChange]
  /** Earlier changes may have been missed. */
  connected: []
}

interface PoolSignalsOptions {
  readonly connectionString: string
  readonly serverId: string
  readonly logger: Logger
}

const Payload = z.object({
  pool: z.string(),
  state: z.string(),
  session: z.string().optional(),
  server: z.string().optional(),
})

/**
 * Receives notifications about pools from all servers. Its connection also shows other servers that this one is
 * present: PostgreSQL notices immediately when a server is killed.
 */
export class PoolSignals extends EventEmitter<PoolSignalMap> {
  readonly #listener: NotificationListener

  constructor({ connectionString, serverId, logger }: PoolSignalsOptions) {
    super()
    this.#listener = new NotificationListener({
      connectionString,
      channel,
      name: listenerName(serverId),
      onNotification: (payload) => this.emit('changed', Payload.parse(JSON.parse(payload)) as PoolChange),
      onConnected: () => this.emit('connected'),
      logger,
    })
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    await this.#listener.start()
  }

  async close(): Promise<void> {
    await this.#listener.close()
  }
}

/** PostgreSQL truncates names of connections. */
function listenerName(serverId: string): string {
  return `berth pools ${serverId}`.slice(0, 63)
}

/** A condition for a query: whether the server with this id is listening now. */
export function isListening(serverId: RawBuilder<string>): RawBuilder<boolean> {
  return sql<boolean>`exists (
    select from pg_stat_activity
    where datname = current_database() and application_name = left('berth pools ' || ${serverId}, 63)
  )`
}
