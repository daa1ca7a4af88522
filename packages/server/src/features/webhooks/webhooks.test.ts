import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Webhook, WebhookDelivery } from '@berth/contract/webhooks/webhook.ts'
import { TestServer } from '../../testing/server-test.ts'
import { WebhookReceiver } from '../../testing/services/webhook-receiver.ts'

interface Failure {
  readonly code: string
  readonly message: string
}

type Created = Webhook & { readonly secret: string }

const server = await TestServer.open()
after(() => server.close())

const url = 'https://receiver.example/hook'

test('a webhook is created, read, listed, changed and deleted', async () => {
  const owner = await server.project()

  const created = await owner.call<Created>('POST', '/webhooks', { url, event_types: ['session.ended'] })
  const { secret, ...webhook } = created.body
  assert.equal(created.status, 201)
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.match(webhook.id, /^whk[a-z0-9]{21}$/)
  const { id } = webhook
  const read = await owner.call<Webhook>('GET', `/webhooks/${id}`)
  assert.deepEqual([read.status, read.body], [200, webhook], 'the secret is told once')
  assert.deepEqual([webhook.enabled, webhook.event_types], [true, ['session.ended']])
  assert.deepEqual((await owner.call<Webhook[]>('GET', '/webhooks')).body, [webhook])

  const disabled = await owner.call<Webhook>('PATCH', `/webhooks/${id}`, {
    description: 'mine',
    event_types: null,
    enabled: false,
  })
  assert.deepEqual(
    [disabled.body.description, disabled.body.event_types, disabled.body.disabled_reason],
    ['mine', null, 'requested'],
  )
  const enabled = await owner.call<Webhook>('PATCH', `/webhooks/${id}`, { enabled: true, description: '' })
  assert.deepEqual(
    [enabled.body.enabled, enabled.body.disabled_reason, enabled.body.disabled_at, enabled.body.description],
    [true, undefined, undefined, undefined],
  )

  assert.equal((await owner.call('DELETE', `/webhooks/${id}`)).status, 204)
  for (const [method, path] of [
    ['GET', `/webhooks/${id}`],
    ['PATCH', `/webhooks/${id}`],
    ['DELETE', `/webhooks/${id}`],
    ['POST', `/webhooks/${id}/test`],
    ['POST', `/webhooks/${id}/rotate_secret`],
    ['GET', `/webhooks/${id}/deliveries`],
    ['GET', `/webhooks/${id}/deliveries/x`],
    ['POST', `/webhooks/${id}/deliveries/x/redeliver`],
  ] as const) {
    const { status, body } = await owner.call<Failure>(method, path, method === 'PATCH' ? {} : undefined)
    assert.deepEqual([status, body.code], [404, 'webhook_not_found'], `${method} ${path}`)
  }
})

test('its secret is not stored in plain text', async () => {
  const owner = await server.project()

  const { body } = await owner.call<Created>('POST', '/webhooks', { url })

  const row = await server.database
    .selectFrom('webhooks')
    .selectAll()
    .where('id', '=', body.id as never)
    .executeTakeFirstOrThrow()
  assert.ok(!row.sealed_secret.includes(body.secret.slice('whsec_'.length)))
  assert.ok(!JSON.stringify(row).includes(body.secret))
})

test('invalid input is rejected with the field and its rule', async () => {
  const owner = await server.project()
  const { body: webhook } = await owner.call<Created>('POST', '/webhooks', { url })

  for (const [body, message] of [
    [{}, /^url: /],
    [{ url: 'ftp://receiver.example' }, /^url: must be a URL with http or https/],
    [{ url: 'https://a:b@receiver.example' }, /^url: must have no user name/],
    [{ url: 'https://receiver.example/#a' }, /^url: must have no fragment/],
    [{ url: 'http://127.0.0.1:1/' }, /^url: must lead to a public address/],
    [{ url: 'http://localhost/' }, /^url: must lead to a public address/],
    [{ url: 'http://169.254.169.254/latest' }, /^url: must lead to a public address/],
    [{ url: 'http://[::ffff:10.0.0.1]/' }, /^url: must lead to a public address/],
    [{ url, event_types: [] }, /^event_types: /],
    [{ url, event_types: ['session.exploded'] }, /^event_types\.0: /],
    [{ url, description: 'x'.repeat(1025) }, /^description: /],
  ] as const) {
    for (const [method, path] of [
      ['POST', '/webhooks'],
      ['PATCH', `/webhooks/${webhook.id}`],
    ] as const) {
      if (method === 'PATCH' && !('url' in body)) continue
      const answer = await owner.call<Failure>(method, path, body)
      assert.equal(answer.status, 400, JSON.stringify(body))
      assert.match(answer.body.message, message)
    }
  }
  for (const overlap_seconds of [-1, 0.5, 604_801, '1']) {
    const answer = await owner.call<Failure>('POST', `/webhooks/${webhook.id}/rotate_secret`, { overlap_seconds })
    assert.match(answer.body.message, /^overlap_seconds: /)
  }
  for (const [query, field] of [
    ['status=waiting', 'status'],
    ['event_type=all', 'event_type'],
    ['limit=0', 'limit'],
  ]) {
    const answer = await owner.call<Failure>('GET', `/webhooks/${webhook.id}/deliveries?${query}`)
    assert.deepEqual([answer.status, answer.body.message.split(':')[0]], [400, field])
  }
})

test('a project has at most 20 webhooks, also when many are created at once', async () => {
  const owner = await server.project()

  const answers = await Promise.all(Array.from({ length: 25 }, () => owner.call<Failure>('POST', '/webhooks', { url })))

  const refused = answers.filter(({ status }) => status !== 201)
  assert.deepEqual(
    refused.map(({ status, body }) => `${status} ${body.code}`),
    Array.from({ length: 5 }, () => '409 webhook_limit_reached'),
  )
})

test('nothing is sent to an address that is not public, whatever URL the row contains', async () => {
  await using receiver = await WebhookReceiver.open()
  const owner = await server.project()
  const { body: webhook } = await owner.call<Created>('POST', '/webhooks', { url })
  // Simulates a name that resolves to another address later.
  await server.database
    .updateTable('webhooks')
    .set({ url: receiver.url })
    .where('id', '=', webhook.id as never)
    .execute()

  const { status, body: delivery } = await owner.call<WebhookDelivery>('POST', `/webhooks/${webhook.id}/test`)
  await server.services.webhookDeliverer.run()

  assert.equal(status, 202)
  const { body } = await owner.call<WebhookDelivery>('GET', `/webhooks/${webhook.id}/deliveries/${delivery.id}`)
  assert.deepEqual(
    [body.status, body.attempt_count, body.error],
    ['failed', 1, 'the URL must lead to a public address'],
  )
  assert.equal(receiver.received.length, 0)
})

test('a delivery is found by its own webhook only', async () => {
  const owner = await server.project()
  const make = async () => (await owner.call<Created>('POST', '/webhooks', { url })).body.id
  const [own, other] = [await make(), await make()]
  const { body: delivery } = await owner.call<WebhookDelivery>('POST', `/webhooks/${own}/test`)

  assert.equal((await owner.call('GET', `/webhooks/${own}/deliveries/${delivery.id}`)).status, 200)
  for (const [method, path] of [
    ['GET', `/webhooks/${other}/deliveries/${delivery.id}`],
    ['POST', `/webhooks/${other}/deliveries/${delivery.id}/redeliver`],
  ] as const) {
    const { status, body } = await owner.call<Failure>(method, path)
    assert.deepEqual([status, body.code], [404, 'webhook_delivery_not_found'])
  }
})
