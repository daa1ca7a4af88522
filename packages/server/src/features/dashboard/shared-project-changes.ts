import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { sql } from 'kysely'
import { z } from 'zod'
import type { Database } from '../../database/database.ts'
import { NotificationListener } from '../../database/notification-listener.ts'
import type { ProjectChanges } from './project-changes.ts'

const channel = 'berth_sessions'

const Payload = z.object({ project: z.string(), session: z.string(), server: z.string() })

interface SharedProjectChangesOptions {
  readonly database: Database
  readonly connectionString: string
  readonly serverId: string
  readonly changes: ProjectChanges
  readonly logger: Logger
}

/** Tells the dashboards of every server that uses the database what happens to the sessions of this one. */
export class SharedProjectChanges {
  readonly #options: SharedProjectChangesOptions
  readonly #listener: NotificationListener

  constructor(options: SharedProjectChangesOptions) {
    this.#options = options
    const { connectionString, serverId, changes, logger } = options
    this.#listener = new NotificationListener({
      connectionString,
      channel,
      name: `berth sessions ${serverId}`.slice(0, 63),
      onNotification: (payload) => this.#take(payload),
      onConnected: () => changes.noteAll(),
      logger,
    })
  }

  async start(): Promise<void> {
    await this.#listener.start()
  }

  async close(): Promise<void> {
    await this.#listener.close()
  }

  /** Nobody waits for it. Without a database there is nothing to tell of. */
  tell(project: ProjectId, session: SessionId): void {
    const { database, serverId, logger } = this.#options
    const payload = JSON.stringify({ project, session, server: serverId })
    sql`select pg_notify(${channel}, ${payload})`
      .execute(database)
      .catch((error: unknown) => logger.warn({ err: error }, 'could not tell the other servers of a session'))
  }

  #take(payload: string): void {
    const { project, session, server } = Payload.parse(JSON.parse(payload))
    const { serverId, changes } = this.#options
    if (server !== serverId) changes.note(project as ProjectId, session as SessionId)
  }
}
