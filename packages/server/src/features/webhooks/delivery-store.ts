import type { OrganizationId, SessionId, WebhookDeliveryId, WebhookId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { testEventType, type WebhookAttempt, type WebhookDeliveryStatus } from '@berth/contract/webhooks/webhook.ts'
import { type Selectable, sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import { newestPage } from '../../database/newest-page.ts'
import type { WebhookDeliveryTable, WebhookTable } from '../../database/tables.ts'
import { disable, type StoredWebhook } from './webhook-store.ts'

export type StoredDelivery = Selectable<WebhookDeliveryTable>

/** A delivery that this server is attempting, with the required columns of its webhook. */
export type ClaimedDelivery = Pick<
  StoredDelivery,
  'id' | 'webhook_id' | 'event_id' | 'event_type' | 'payload' | 'attempt_count'
> &
  Pick<
    Selectable<WebhookTable>,
    'project_id' | 'url' | 'sealed_secret' | 'sealed_previous_secret' | 'previous_secret_expires_at'
  > & { readonly organization_id: OrganizationId }

export interface ClaimLimits {
  /** The number of deliveries that this server may claim. */
  readonly total: number
  readonly perOrganization: number
  readonly perWebhook: number
  /** After this time, the server counts as dead. Must be longer than an attempt. */
  readonly leaseSeconds: number
}

export interface DeliveryFilter {
  readonly status: WebhookDeliveryStatus | undefined
  readonly eventType: string | undefined
}

export type Outcome =
  | { readonly kind: 'succeeded' }
  /** The time until the next attempt. Null after the last one. */
  | { readonly kind: 'failed'; readonly retrySeconds: number | null; readonly isGone: boolean }

interface NewDelivery {
  readonly id: WebhookDeliveryId
  readonly webhookId: WebhookId
  readonly eventId: string
  readonly eventType: string
  readonly payload: string
  readonly redeliveryOf?: WebhookDeliveryId
}

/** The deliveries of webhooks: pending ones, claims of servers, and results. */
export class DeliveryStore {
  readonly #database: Database
  readonly #serverId: string

  constructor(database: Database, serverId: string) {
    this.#database = database
    this.#serverId = serverId
  }

  /** Releases the claims of an earlier run of this server. Call before it sends anything. */
  async forgetOwnClaims(): Promise<void> {
    await this.#database
      .updateTable('webhook_deliveries')
      .set({ claimed_until: null, claimed_by: null, next_attempt_at: sql<Date>`now()` })
      .where('status', '=', 'pending')
      .where('claimed_by', '=', this.#serverId)
      .execute()
  }

  /**
   * Claims due deliveries. One statement, so each is claimed by one server. A failing endpoint is given one delivery at
   * a time, and all endpoints of an organization together only their share, so that they delay only themselves. Claims
   * of a killed server count until their lease ends, and are then due.
   */
  async claim({ total, perOrganization, perWebhook, leaseSeconds }: ClaimLimits): Promise<readonly ClaimedDelivery[]> {
    const isDue = sql<boolean>`status = 'pending' and next_attempt_at <= now()
      and (webhooks.is_enabled or event_type = ${testEventType})`
    const { rows } = await sql<ClaimedDelivery>`
      with due_webhooks as materialized (
        select webhooks.id, organization_id, failing_since is not null as is_failing
        from webhooks join projects on projects.id = project_id
        where exists (select from webhook_deliveries where webhook_id = webhooks.id and ${isDue})
      ),
      taken as materialized (
        select due.id from (select distinct organization_id from due_webhooks) organizations
        cross join lateral (
          select delivery.id from due_webhooks
          cross join lateral (
            select webhook_deliveries.id, next_attempt_at
            from webhook_deliveries join webhooks on webhooks.id = webhook_id
            where webhook_id = due_webhooks.id and ${isDue}
            order by next_attempt_at, webhook_deliveries.created_at
            limit greatest(0, case when is_failing then 1 else ${perWebhook} end - (
              select count(*) from webhook_deliveries running
              where running.webhook_id = due_webhooks.id and running.status = 'pending' and running.claimed_until > now()))
            for update of webhook_deliveries skip locked
          ) delivery
          where due_webhooks.organization_id = organizations.organization_id
          order by next_attempt_at
          limit greatest(0, ${perOrganization} - (
            select count(*) from webhook_deliveries running
            join webhooks on webhooks.id = running.webhook_id join projects on projects.id = webhooks.project_id
            where projects.organization_id = organizations.organization_id
              and running.status = 'pending' and running.claimed_until > now()))
        ) due
        limit ${total}
      )
      update webhook_deliveries
      set attempt_count = attempt_count + 1, claimed_until = now() + make_interval(secs => ${leaseSeconds}),
        claimed_by = ${this.#serverId}, next_attempt_at = now() + make_interval(secs => ${leaseSeconds})
      from taken, webhooks, projects
      where webhook_deliveries.id = taken.id and webhooks.id = webhook_id and projects.id = webhooks.project_id
      returning webhook_deliveries.id, webhook_id, event_id, event_type, payload, attempt_count, webhooks.project_id,
        url, sealed_secret, sealed_previous_secret, previous_secret_expires_at, organization_id`.execute(this.#database)
    return rows
  }

  /** Records the result of an attempt, unless another server has claimed the delivery since, or it was canceled. */
  async finish(
    { id, webhook_id, event_type, attempt_count }: ClaimedDelivery,
    attempt: WebhookAttempt,
    outcome: Outcome,
    { now, failingLimitDays }: { readonly now: Date; readonly failingLimitDays: number },
  ): Promise<void> {
    await this.#database.transaction().execute(async (database) => {
      const isTest = event_type === testEventType
      const webhook = isTest ? undefined : await this.#noteHealth(webhook_id, outcome, now, database)
      const retrySeconds = outcome.kind === 'failed' ? outcome.retrySeconds : null
      const ended = outcome.kind === 'succeeded' ? 'succeeded' : 'failed'
      await database
        .updateTable('webhook_deliveries')
        .set({
          status: retrySeconds === null ? ended : 'pending',
          claimed_until: null,
          claimed_by: null,
          attempts: sql`attempts || ${JSON.stringify(attempt)}::jsonb`,
          ...(retrySeconds !== null && {
            next_attempt_at: sql<Date>`now() + make_interval(secs => ${retrySeconds}::double precision)`,
          }),
        })
        .where('id', '=', id)
        .where('attempt_count', '=', attempt_count)
        .where('status', '=', 'pending')
        .execute()
      if (!webhook || outcome.kind === 'succeeded') return
      const limit = new Date(now.getTime() - failingLimitDays * 86_400_000)
      if (outcome.isGone) await disable(webhook_id, 'gone', now, database)
      else if (webhook.failing_since && webhook.failing_since <= limit) {
        await disable(webhook_id, 'failing', now, database)
      }
    })
  }

  /** Locks the webhook before anything else. */
  async #noteHealth(
    id: WebhookId,
    { kind }: Outcome,
    now: Date,
    database: Database,
  ): Promise<Pick<StoredWebhook, 'failing_since'> | undefined> {
    return database
      .updateTable('webhooks')
      .set({
        failing_since: kind === 'succeeded' ? null : sql<Date>`coalesce(failing_since, ${now}::timestamptz)`,
      })
      .where('id', '=', id)
      .returning('failing_since')
      .executeTakeFirst()
  }

  /** Releases an attempt that this server aborted itself: it is due again and not counted. */
  async release({ id, attempt_count }: ClaimedDelivery): Promise<void> {
    await this.#database
      .updateTable('webhook_deliveries')
      .set({
        attempt_count: attempt_count - 1,
        claimed_until: null,
        claimed_by: null,
        next_attempt_at: sql<Date>`now()`,
      })
      .where('id', '=', id)
      .where('attempt_count', '=', attempt_count)
      .where('status', '=', 'pending')
      .execute()
  }

  /** Undefined at the limit of pending deliveries. Concurrent inserts may exceed it by one. */
  async insert(delivery: NewDelivery, limit: number): Promise<StoredDelivery | undefined> {
    const { id, webhookId, eventId, eventType, payload, redeliveryOf = null } = delivery
    const { rows } = await sql<StoredDelivery>`
      insert into webhook_deliveries (id, webhook_id, event_id, event_type, payload, redelivery_of)
      select ${id}, webhooks.id, ${eventId}, ${eventType}, ${payload}, ${redeliveryOf}::text from webhooks
      where webhooks.id = ${webhookId} and ${limit} > (
        select count(*) from webhook_deliveries where webhook_id = ${webhookId} and status = 'pending')
      for key share of webhooks
      returning *`.execute(this.#database)
    return rows[0]
  }

  async find(webhookId: WebhookId, id: string): Promise<StoredDelivery | undefined> {
    return this.#database
      .selectFrom('webhook_deliveries')
      .selectAll()
      .where('webhook_id', '=', webhookId)
      .where('id', '=', id as WebhookDeliveryId)
      .executeTakeFirst()
  }

  /** Newest first. */
  async list(
    webhookId: WebhookId,
    { status, eventType }: DeliveryFilter,
    page: PageRequest,
  ): Promise<Page<StoredDelivery>> {
    let query = this.#database.selectFrom('webhook_deliveries').selectAll().where('webhook_id', '=', webhookId)
    if (status) query = query.where('status', '=', status)
    if (eventType) query = query.where('event_type', '=', eventType)
    return newestPage(query, page)
  }

  /** Removes some finished deliveries that are older, and returns their number. */
  async removeOld(before: Date, limit: number): Promise<number> {
    const { rows } = await sql`
      delete from webhook_deliveries where id in (
        select id from webhook_deliveries where status <> 'pending' and created_at < ${before} limit ${limit}
        -- Those of a webhook that is being deleted go with it. Neither waits for the other.
        for update skip locked)
      returning id`.execute(this.#database)
    return rows.length
  }

  /** Records an event that no row causes. A repeated report is recorded once. */
  async recordCrash(sessionId: SessionId, key: string, at: Date, service: string): Promise<void> {
    await sql`
      select record_webhook_event(project_id, 'session.service_crashed', ${at}, jsonb_build_object(
        'session_id', id, 'project_id', project_id, 'name', name, 'tags', tags, 'service', ${service}::text), ${key})
      from sessions where id = ${sessionId} and state = 'active'`.execute(this.#database)
  }
}
