import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Webhook, WebhookDelivery, WebhookDeliveryDetails } from '@berth/contract/webhooks/webhook.ts'
import { sql } from 'kysely'
import { Webhook as Verifier } from 'standardwebhooks'
import { type TestProject, TestServer } from '../../testing/server-test.ts'
import { WebhookReceiver } from '../../testing/services/webhook-receiver.ts'
import { retryPausesSeconds } from './webhook-deliverer.ts'

const server = await TestServer.open({ egressAllow: ['127.0.0.1'], webhookLimitMilliseconds: 5_000 })
after(() => server.close())

interface Failure {
  readonly code: string
}

type Created = Webhook & { readonly secret: string }

const create = async (owner: TestProject, { url }: WebhookReceiver, body: object = {}) =>
  (await owner.call<Created>('POST', '/webhooks', { url, ...body })).body

const read = async (owner: TestProject, { id }: Webhook) => (await owner.call<Webhook>('GET', `/webhooks/${id}`)).body

const list = async (owner: TestProject, { id }: Webhook, query = 'limit=100') =>
  (await owner.call<WebhookDelivery[]>('GET', `/webhooks/${id}/deliveries?${query}`)).body

const get = async (owner: TestProject, { webhook_id, id }: WebhookDelivery) =>
  (await owner.call<WebhookDeliveryDetails>('GET', `/webhooks/${webhook_id}/deliveries/${id}`)).body

const deliver = (from = server): Promise<void> => from.services.webhookDeliverer.run()

/** Advances the time for pending deliveries. */
const pass = (seconds: number) =>
  sql`update webhook_deliveries set next_attempt_at = next_attempt_at - make_interval(secs => ${seconds}),
    claimed_until = claimed_until - make_interval(secs => ${seconds}) where status = 'pending'`.execute(server.database)

const verify = (secret: string, { body, headers }: WebhookReceiver['received'][number]) =>
  new Verifier(secret).verify(body, headers as Record<string, string>)

test('a delivery is signed as Standard Webhooks defines, and listed in the log', async () => {
  await using receiver = await WebhookReceiver.open()
  const owner = await server.project()
  const webhook = await create(owner, receiver, { event_types: ['session.created'] })
  receiver.answers = [(response) => response.writeHead(200).end('got it\0')]
  const session = await owner.session({ headless: true, name: 'mine' })

  await deliver()

  const [received] = receiver.received
  assert.ok(received)
  const event = verify(webhook.secret, received) as { type: string; data: { session_id: string } }
  assert.deepEqual([event.type, event.data.session_id], ['session.created', session.session_id])
  assert.throws(() => verify(webhook.secret, { ...received, body: `${received.body} ` }))
  assert.deepEqual([received.path, received.headers['content-type']], ['/hook?x=1', 'application/json'])
  const [delivery] = await list(owner, webhook)
  assert.ok(delivery)
  assert.deepEqual(
    [delivery.status, delivery.attempt_count, delivery.response_status, delivery.event_id],
    ['succeeded', 1, 200, received.headers['webhook-id']],
  )
  const details = await get(owner, delivery)
  assert.deepEqual(details.payload, JSON.parse(received.body))
  assert.deepEqual(
    details.attempts.map(({ response_body, response_status }) => [response_body, response_status]),
    [['got it\uFFFD', 200]],
  )
})

test('after a rotation both secrets sign until the overlap is over', async () => {
  await using receiver = await WebhookReceiver.open()
  const owner = await server.project()
  const webhook = await create(owner, receiver)
  const rotate = await owner.call<{ secret: string }>('POST', `/webhooks/${webhook.id}/rotate_secret`, {
    overlap_seconds: 60,
  })
  const test = () => owner.call('POST', `/webhooks/${webhook.id}/test`)

  await test()
  await deliver()
  const [both] = receiver.received
  server.clock.advance(61)
  await test()
  await deliver()
  const [, one] = receiver.received

  assert.ok(both && one)
  assert.notEqual(rotate.body.secret, webhook.secret)
  verify(webhook.secret, both)
  verify(rotate.body.secret, both)
  const signatures = String(one.headers['webhook-signature']).split(' ')
  assert.equal(signatures.length, 1)
  server.clock.advance(-61)
})

test('a failed delivery is repeated with growing pauses, with the same id and body, until it succeeds', async () => {
  await using receiver = await WebhookReceiver.open()
  const owner = await server.project()
  const webhook = await create(owner, receiver, { event_types: ['session.created'] })
  receiver.answers = [500, (response) => response.destroy(), 302, 204]
  await owner.session()

  await deliver()
  await deliver()
  assert.equal(receiver.received.length, 1, 'not before its time')
  assert.ok((await read(owner, webhook)).failing_since)
  for (const pause of retryPausesSeconds.slice(0, 3)) {
    await pass(pause * 1.2)
    await deliver()
  }

  const [delivery] = await list(owner, webhook)
  assert.ok(delivery)
  const { status, attempts } = await get(owner, delivery)
  assert.deepEqual(
    [status, attempts.map(({ response_status }) => response_status)],
    ['succeeded', [500, undefined, 302, 204]],
  )
  assert.match(String(attempts[1]?.error), /hang up|reset/)
  assert.equal(new Set(receiver.received.map(({ headers, body }) => `${headers['webhook-id']} ${body}`)).size, 1)
  assert.equal((await read(owner, webhook)).failing_since, undefined)
})

test('a delivery is given up after its last attempt, and can be delivered again', async () => {
  await using receiver = await WebhookReceiver.open()
  const owner = await server.project()
  const webhook = await create(owner, receiver, { event_types: ['session.created'] })
  receiver.answers = [500]
  await owner.session()

  for (const pause of [0, ...retryPausesSeconds, 1_000_000]) {
    await pass(pause * 1.2)
    await deliver()
  }

  assert.equal(receiver.received.length, retryPausesSeconds.length + 1)
  const [delivery] = await list(owner, webhook, 'status=failed')
  assert.ok(delivery)
  receiver.answers = [204]
  const again = await owner.call<WebhookDelivery>('POST', `/webhooks/${webhook.id}/deliveries/${delivery.id}/redeliver`)
  await deliver()
  assert.deepEqual([again.status, again.body.event_id, again.body.redelivery_of], [202, delivery.event_id, delivery.id])
  assert.equal((await get(owner, again.body)).status, 'succeeded')
  assert.deepEqual(receiver.received.at(-1)?.headers['webhook-id'], delivery.event_id)
})

test('an endpoint that requests a pause gets it', async () => {
  await using receiver = await WebhookReceiver.open()
  const owner = await server.project()
  const webhook = await create(owner, receiver, { event_types: ['session.created'] })
  receiver.answers = [(response) => response.writeHead(429, { 'retry-after': '600' }).end()]
  await owner.session()

  await deliver()

  const [delivery] = await list(owner, webhook)
  const pause = Date.parse(String(delivery?.next_attempt_at)) - Date.now()
  assert.ok(pause > 550_000 && pause < 650_000, String(pause))
})

test('an endpoint that is gone, or has failed for five days, is disabled with the reason', async () => {
  await using receiver = await WebhookReceiver.open()
  for (const [reason, answer, days] of [
    ['gone', 410, 0],
    ['failing', 500, 5],
  ] as const) {
    const owner = await server.project()
    const webhook = await create(owner, receiver, { event_types: ['session.created'] })
    receiver.answers = [500]
    await owner.session()
    await deliver()
    server.clock.advance(days * 86_400)
    await owner.session()
    receiver.answers = [answer]
    await deliver()

    const { enabled, disabled_reason } = await read(owner, webhook)
    assert.deepEqual([enabled, disabled_reason], [false, reason])
    const statuses = (await list(owner, webhook)).map(({ status }) => status).toSorted()
    assert.deepEqual(statuses, reason === 'gone' ? ['canceled', 'failed'] : ['canceled', 'canceled'])
    const [delivery] = await list(owner, webhook)
    const again = await owner.call<Failure>('POST', `/webhooks/${webhook.id}/deliveries/${delivery?.id}/redeliver`)
    assert.deepEqual([again.status, again.body.code], [409, 'webhook_disabled'])

    receiver.answers = [204]
    const test = await owner.call<WebhookDelivery>('POST', `/webhooks/${webhook.id}/test`)
    await deliver()
    assert.equal((await get(owner, test.body)).status, 'succeeded', 'a test is sent all the same')
    const after = await owner.call<Webhook>('PATCH', `/webhooks/${webhook.id}`, { enabled: true })
    assert.deepEqual([after.body.enabled, after.body.failing_since], [true, undefined])
    server.clock.advance(-days * 86_400)
  }
})

test('a webhook with too many pending deliveries is disabled, which a caller cannot cause', async () => {
  await using receiver = await WebhookReceiver.open()
  const owner = await server.project()
  const webhook = await create(owner, receiver)
  const fill = (from: number, to: number) =>
    sql`insert into webhook_deliveries (id, webhook_id, event_id, event_type, payload)
      select 'whd' || n, ${webhook.id}, n::text, 'session.created', '{}' from generate_series(${from}::int, ${to}::int) n`.execute(
      server.database,
    )
  await fill(1, 1_000)

  const refused = await owner.call<Failure>('POST', `/webhooks/${webhook.id}/test`)
  await server.services.webhooks.tend()
  const before = await read(owner, webhook)
  await fill(1_001, 10_001)
  await server.services.webhooks.tend()

  assert.deepEqual([refused.status, refused.body.code, before.enabled], [409, 'webhook_backlog_full', true])
  assert.equal((await read(owner, webhook)).disabled_reason, 'backlog')
  assert.deepEqual(await list(owner, webhook, 'status=pending'), [])
})

test('deliveries of a transaction for a webhook that was disabled meanwhile are canceled', async () => {
  await using receiver = await WebhookReceiver.open()
  const owner = await server.project()
  const webhook = await create(owner, receiver, { event_types: ['session.created'] })
  await owner.session()
  await sql`update webhooks set is_enabled = false, disabled_reason = 'requested', disabled_at = now()
    where id = ${webhook.id}`.execute(server.database)

  await deliver()
  await server.services.webhooks.tend()

  const [delivery] = await list(owner, webhook)
  assert.deepEqual([delivery?.status, receiver.received.length], ['canceled', 0])
})

test('each delivery is sent by one of two servers, and the claims of a killed one are delivered by the other', async () => {
  await using receiver = await WebhookReceiver.open()
  const other = await server.sibling('other')
  try {
    const owner = await server.project()
    const webhook = await create(owner, receiver, { event_types: ['session.created'] })
    await Promise.all(Array.from({ length: 20 }, () => owner.session()))

    await Promise.all([deliver(), deliver(other)])

    assert.equal(receiver.received.length, 20)
    assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 20)

    await owner.session()
    const store = await killedWithClaims()
    assert.equal(store, 1)
    await deliver(other)
    assert.equal(receiver.received.length, 20, 'another server may still be sending it')
    await pass(61)
    await deliver(other)
    assert.equal(receiver.received.length, 21)
    assert.equal((await list(owner, webhook))[0]?.attempt_count, 2)
  } finally {
    await other.close()
  }
})

/** Claims what is due, like a server that is killed immediately. */
async function killedWithClaims(): Promise<number> {
  const { DeliveryStore } = await import('./delivery-store.ts')
  const limits = { total: 100, perOrganization: 12, perWebhook: 4, leaseSeconds: 60 }
  return (await new DeliveryStore(server.database, 'killed').claim(limits)).length
}

test('endpoints that hang occupy only the slots of their organization', async () => {
  await using hanging = await WebhookReceiver.open()
  await using quick = await WebhookReceiver.open()
  hanging.answers = [() => {}]
  const [slow, fast] = [await server.project(), await server.project()]
  const webhooks = await Promise.all(Array.from({ length: 5 }, () => create(slow, hanging)))
  const webhook = await create(fast, quick)
  await Promise.all(Array.from({ length: 6 }, () => slow.session()))
  const running = deliver()
  await hanging.untilReceived(12)

  await fast.session()
  void deliver()
  await quick.untilReceived(1)

  const inFlight = await sql<{ count: number }>`select count(*)::int as count from webhook_deliveries
    where status = 'pending' and claimed_until > now() and webhook_id in (${sql.join(webhooks.map(({ id }) => id))})`.execute(
    server.database,
  )
  assert.equal(inFlight.rows[0]?.count, 12)
  hanging.answers = [204]
  await running
  await deliver()
  const [delivery] = await list(fast, webhook)
  assert.equal(delivery?.status, 'succeeded')
  const failed = (await Promise.all(webhooks.map((one) => list(slow, one)))).flat().filter(({ error }) => error)
  assert.equal(failed.length, 12)
  assert.match(String(failed[0]?.error), /no response within 5 s/)
})

test('an endpoint that fails is given one delivery at a time until it succeeds', async () => {
  await using receiver = await WebhookReceiver.open()
  const owner = await server.project()
  await create(owner, receiver, { event_types: ['session.created'] })
  receiver.answers = [500]
  await owner.session()
  await deliver()
  let [open, most] = [0, 0]
  const answer = (response: ServerResponse) => {
    open += 1
    most = Math.max(most, open)
    setImmediate(() => {
      open -= 1
      response.writeHead(500).end()
    })
  }
  receiver.answers = [answer]
  await Promise.all(Array.from({ length: 6 }, () => owner.session()))

  await deliver()

  assert.deepEqual([receiver.received.length, most], [7, 1])
})

test('an endless response is cut off, and its status counts', async () => {
  await using receiver = await WebhookReceiver.open()
  const owner = await server.project()
  const webhook = await create(owner, receiver, { event_types: ['session.created'] })
  let sent = 0
  let isCut = false
  receiver.answers = [
    (response) => {
      const chunk = Buffer.alloc(64 * 1024, 'x')
      const write = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length
      }
      response.writeHead(200).on('drain', write)
      response.once('close', () => {
        isCut = true
      })
      write()
    },
  ]
  await owner.session()

  await deliver()

  const [delivery] = await list(owner, webhook)
  assert.ok(delivery)
  const { status, attempts } = await get(owner, delivery)
  assert.deepEqual([status, attempts[0]?.response_body?.length], ['succeeded', 1_000])
  await delivered(() => isCut)
  assert.ok(sent < 16 * 1024 * 1024, String(sent))
})

async function delivered(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await delay(5)
}

test('a stop aborts deliveries in progress, which are repeated without counting the attempt', async () => {
  await using receiver = await WebhookReceiver.open()
  receiver.answers = [() => {}, 204]
  const stopping = await server.sibling('stopping')
  const owner = await server.project()
  const webhook = await create(owner, receiver, { event_types: ['session.created'] })
  await owner.session()
  const running = deliver(stopping)
  await receiver.untilReceived(1)

  await stopping.services.webhookDeliverer.close()
  await running
  await deliver()

  const [delivery] = await list(owner, webhook)
  assert.deepEqual([delivery?.status, delivery?.attempt_count], ['succeeded', 1])
  await stopping.close()
})

test('old deliveries are removed, except pending ones', async () => {
  await using receiver = await WebhookReceiver.open()
  const owner = await server.project()
  const webhook = await create(owner, receiver, { event_types: ['session.created', 'session.ended'] })
  const session = await owner.session()
  await deliver()
  receiver.answers = [500]
  await owner.call('DELETE', `/browsers/${session.session_id as SessionId}`)
  await deliver()

  await server.services.webhooks.tend()
  assert.equal((await list(owner, webhook)).length, 2)
  server.clock.advance(8 * 86_400)
  await server.services.webhooks.tend()

  const left = await list(owner, webhook)
  assert.deepEqual(
    left.map(({ event_type, status }) => [event_type, status]),
    [['session.ended', 'pending']],
  )
  server.clock.advance(-8 * 86_400)
})
