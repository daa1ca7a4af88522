import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Berth } from './testing/berth.ts'

const berth = await Berth.start()
after(() => berth[Symbol.asyncDispose]())
const client = await berth.client()
const session = await client.browsers.create({ headless: true })

test('an operation answers the same under both roots', async () => {
  const token = new URL(session.cdp_ws_url).searchParams.get('jwt')
  const direct = await fetch(`${session.base_url}/fs/file_info?path=/home/kernel&jwt=${token}`)
  const byKey = await client.browsers.fs.fileInfo(session.session_id, { path: '/home/kernel' })

  assert.equal(direct.status, 200)
  assert.deepEqual(await direct.json(), byKey)
  assert.equal(byKey.mode, 'drwx------')
})

test('what is wrong with a call is told alike under both roots', async () => {
  const token = new URL(session.cdp_ws_url).searchParams.get('jwt')
  for (const [query, status, code] of [
    ['path=/nowhere', 404, 'file_not_found'],
    ['path=here', 400, 'invalid_input'],
    ['', 400, 'invalid_input'],
  ] as const) {
    const headers = { authorization: `Bearer ${berth.apiKey}` }
    const answers = [
      await fetch(`${session.base_url}/fs/file_info?${query}&jwt=${token}`),
      await fetch(`${berth.url}/browsers/${session.session_id}/fs/file_info?${query}`, { headers }),
    ]
    const bodies = (await Promise.all(answers.map((answer) => answer.json()))) as { code: string }[]
    assert.deepEqual(
      answers.map((answer) => answer.status),
      [status, status],
    )
    assert.equal(bodies[0]?.code, code)
    assert.deepEqual(bodies[0], bodies[1])
  }
})

test('nobody without key or token is let in', async () => {
  const other = await client.browsers.create({ headless: true })
  const otherToken = new URL(other.cdp_ws_url).searchParams.get('jwt')
  const statusOf = async (url: string) => (await fetch(url)).status

  assert.equal(await statusOf(`${session.base_url}/fs/file_info?path=/tmp`), 401)
  assert.equal(await statusOf(`${session.base_url}/fs/file_info?path=/tmp&jwt=${otherToken}`), 401)
  assert.equal(await statusOf(`${berth.url}/browsers/${session.session_id}/fs/file_info?path=/tmp`), 401)
  await client.browsers.deleteByID(other.session_id)
  assert.equal(await statusOf(`${other.base_url}/fs/file_info?path=/tmp&jwt=${otherToken}`), 404)
})
