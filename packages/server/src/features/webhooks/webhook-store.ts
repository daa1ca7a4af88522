import type { ProjectId, WebhookId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { testEventType, type WebhookDisabledReason } from '@berth/contract/webhooks/webhook.ts'
import { type Insertable, type Selectable, sql, type Transaction, type Updateable } from 'kysely'
import type { Database } from '../../database/database.ts'
import { newestPage } from '../../database/newest-page.ts'
import type { Tables, WebhookTable } from '../../database/tables.ts'

export type StoredWebhook = Selectable<WebhookTable>

/** The columns that a caller can change. */
export type WebhookChange = Pick<Updateable<WebhookTable>, 'url' | 'description' | 'event_types'> & {
  readonly isEnabled?: boolean
}

export class WebhookStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Undefined at the limit of the project. Creates of one project run one after another. */
  async insert(webhook: Insertable<WebhookTable>, limit: number): Promise<StoredWebhook | undefined> {
    return this.#database.transaction().execute(async (database) => {
      await sql`select from projects where id = ${webhook.project_id} for no key update`.execute(database)
      const { count } = await database
        .selectFrom('webhooks')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('project_id', '=', webhook.project_id)
        .executeTakeFirstOrThrow()
      if (count >= limit) return undefined
      return database.insertInto('webhooks').values(webhook).returningAll().executeTakeFirstOrThrow()
    })
  }

  async find(projectId: ProjectId, id: string): Promise<StoredWebhook | undefined> {
    return this.#database
      .selectFrom('webhooks')
      .selectAll()
      .where('project_id', '=', projectId)
      .where('id', '=', id as WebhookId)
      .executeTakeFirst()
  }

  /** Newest first. */
  async list(projectId: ProjectId, page: PageRequest): Promise<Page<StoredWebhook>> {
    return newestPage(this.#database.selectFrom('webhooks').selectAll().where('project_id', '=', projectId), page)
  }

  /** Enabling an enabled webhook, or disabling a disabled one, keeps its reason and time. */
  async update(
    projectId: ProjectId,
    id: string,
    { isEnabled, ...columns }: WebhookChange,
    now: Date,
  ): Promise<StoredWebhook | undefined> {
    return this.#database.transaction().execute(async (database) => {
      const updated = await database
        .updateTable('webhooks')
        .set({
          ...columns,
          ...(isEnabled === true && enabled),
          ...(isEnabled === false && disabledColumns('requested', now)),
          updated_at: now,
        })
        .where('project_id', '=', projectId)
        .where('id', '=', id as WebhookId)
        .returningAll()
        .executeTakeFirst()
      if (updated && isEnabled === false) await cancelPending(updated.id, database)
      return updated
    })
  }

  /** Of two concurrent rotations, the later one's secret is current, and the earlier one's is the previous secret. */
  async rotate(
    projectId: ProjectId,
    id: string,
    sealedSecret: Buffer,
    now: Date,
    previousUntil: Date,
  ): Promise<StoredWebhook | undefined> {
    return this.#database
      .updateTable('webhooks')
      .set(({ ref }) => ({
        sealed_previous_secret: ref('sealed_secret'),
        previous_secret_expires_at: previousUntil,
        sealed_secret: sealedSecret,
        updated_at: now,
      }))
      .where('project_id', '=', projectId)
      .where('id', '=', id as WebhookId)
      .returningAll()
      .executeTakeFirst()
  }

  /** Of two concurrent deletes, one returns true. */
  async delete(projectId: ProjectId, id: string): Promise<boolean> {
    const deleted = await this.#database
      .deleteFrom('webhooks')
      .where('project_id', '=', projectId)
      .where('id', '=', id as WebhookId)
      .returning('id')
      .executeTakeFirst()
    return deleted !== undefined
  }

  /** Cancels deliveries of transactions that started before their webhook was disabled. */
  async cancelOfDisabled(): Promise<void> {
    await sql`
      update webhook_deliveries set status = 'canceled' where id in (
        select webhook_deliveries.id from webhook_deliveries join webhooks on webhooks.id = webhook_id
        where not is_enabled and status = 'pending' and event_type <> ${testEventType}
        for update of webhook_deliveries skip locked)`.execute(this.#database)
  }

  /** Disables webhooks with more pending deliveries than this, and returns them. */
  async disableOverfull(limit: number, now: Date): Promise<readonly WebhookId[]> {
    const full = await this.#database
      .selectFrom('webhook_deliveries')
      .select('webhook_id')
      .where('status', '=', 'pending')
      .groupBy('webhook_id')
      .having(({ fn }) => fn.countAll(), '>', limit)
      .execute()
    for (const { webhook_id } of full) {
      await this.#database.transaction().execute((database) => disable(webhook_id, 'backlog', now, database))
    }
    return full.map(({ webhook_id }) => webhook_id)
  }
}

const enabled = { is_enabled: true, disabled_reason: null, disabled_at: null, failing_since: null } as const

function disabledColumns(reason: WebhookDisabledReason, now: Date) {
  return {
    is_enabled: false,
    disabled_reason: sql<WebhookDisabledReason>`coalesce(disabled_reason, ${reason})`,
    disabled_at: sql<Date>`coalesce(disabled_at, ${now}::timestamptz)`,
  }
}

/**
 * Disables a webhook and cancels its pending deliveries. Transactions that change both lock the webhook first, to
 * prevent deadlocks.
 */
export async function disable(
  id: WebhookId,
  reason: WebhookDisabledReason,
  now: Date,
  database: Transaction<Tables>,
): Promise<void> {
  await database.updateTable('webhooks').set(disabledColumns(reason, now)).where('id', '=', id).execute()
  await cancelPending(id, database)
}

async function cancelPending(id: WebhookId, database: Transaction<Tables>): Promise<void> {
  await database
    .updateTable('webhook_deliveries')
    .set({ status: 'canceled', claimed_until: null, claimed_by: null })
    .where('webhook_id', '=', id)
    .where('status', '=', 'pending')
    .execute()
}
