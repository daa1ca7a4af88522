import type { OrganizationId, ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { ListName } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { sql } from 'kysely'
import { z } from 'zod'
import type { Database } from '../../database/database.ts'
import { NotificationListener } from '../../database/notification-listener.ts'
import type { ProjectChanges } from './project-changes.ts'

const channel = 'berth_changes'

/** Servers notify of sessions. Triggers of the database notify of recordings, downloads and other lists. */
const Payload = z.union([
  z.object({ session: z.string(), project: z.string(), server: z.string().optional() }),
  z.object({
    list: ListName,
    project: z
      .string()
      .nullish()
      .transform((id) => (id ?? undefined) as ProjectId | undefined),
    organization: z
      .string()
      .nullish()
      .transform((id) => (id ?? undefined) as OrganizationId | undefined),
  }),
])

interface SharedProjectChangesOptions {
  readonly database: Database
  readonly connectionString: string
  readonly serverId: string
  readonly changes: ProjectChanges
  readonly logger: Logger
}

/**
 * Notifies the dashboards of all servers of changes to the sessions of this server, and receives changes of other lists
 * from the database.
 */
export class SharedProjectChanges {
  readonly #options: SharedProjectChangesOptions
  readonly #listener: NotificationListener

  constructor(options: SharedProjectChangesOptions) {
    this.#options = options
    const { connectionString, serverId, changes, logger } = options
    this.#listener = new NotificationListener({
      connectionString,
      channel,
      name: `berth changes ${serverId}`.slice(0, 63),
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

  /** Not awaited. Without a database there are no changes. */
  tell(project: ProjectId, session: SessionId): void {
    const { database, serverId, logger } = this.#options
    const payload = JSON.stringify({ project, session, server: serverId })
    sql`select pg_notify(${channel}, ${payload})`
      .execute(database)
      .catch((error: unknown) => logger.warn({ err: error }, 'could not notify other servers of a session'))
  }

  #take(payload: string): void {
    const { serverId, changes } = this.#options
    const { data: change } = Payload.safeParse(jsonOf(payload))
    if (!change)
      changes.noteAll() // A newer server has additional lists.
    else if ('list' in change) changes.noteList(change.list, change)
    else if (change.server !== serverId) changes.note(change.project as ProjectId, change.session as SessionId)
  }
}

/** Any user of the database can write to its channels. */
function jsonOf(payload: string): unknown {
  try {
    return JSON.parse(payload)
  } catch {
    return undefined
  }
}
