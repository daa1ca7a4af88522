import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, beforeEach, test } from 'node:test'
import type { FakeLoginSite } from '../../testing/fakes/fake-login.ts'
import { TestServer } from '../../testing/server-test.ts'
import { connect, host, isAsking, isOver, login, password, read, submit, until } from './testing/logins.ts'

const user = 'ann.planted@site.test'
const totpSecret = 'GEZDGNBVGY3TQOJQ'
const says = (content: string) => JSON.stringify({ choices: [{ message: { content } }] })
const pick =
  (ref: string | null): RequestListener =>
  (_request, response) =>
    response.end(says(JSON.stringify({ choose: ref })))

/** Every complete request. */
const asked: string[] = []
let answer: RequestListener
const model = createServer(async (request, response) => {
  asked.push(`${request.url} ${JSON.stringify(request.headers)} ${await text(request)}`)
  answer(request, response)
}).listen(0, '127.0.0.1')
await once(model, 'listening')
const url = `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`
const server = await TestServer.open({ loginModel: { url, name: 'small', key: 'model-key' } })
beforeEach(() => asked.splice(0))
after(async () => {
  await server.close()
  model.closeAllConnections()
  model.close()
})

/** The page does not show which account to use, and repeats values that must stay secret. */
const site: FakeLoginSite = {
  first: 'login',
  pages: {
    login: {
      state: 'form',
      fields: [
        { name: 'username', purpose: 'username' },
        { name: 'password', purpose: 'password' },
      ],
      submit: () => 'accounts',
    },
    accounts: {
      state: 'choice',
      choices: [
        { kind: 'account', label: 'Work' },
        {
          kind: 'account',
          // Not the bare name: with it, the account would be found without a model.
          label: `Private/${user.toUpperCase()}`,
          description: `Last password ${password}, code 123456`,
        },
        { kind: 'sso', label: 'Continue with Acme', provider: 'acme' },
        { kind: 'terms', label: 'I agree' },
      ],
      about: {
        title: `Hello ${user}, ${encodeURIComponent(password)}`,
        url: `https://site.test/accounts/${'t'.repeat(40)}?password=${encodeURIComponent(password)}#${totpSecret}`,
      },
      choose: (label) => (label.startsWith('Private') ? 'home' : 'accounts'),
    },
    home: { state: 'logged_in' },
  },
}

async function begin(more: object = {}) {
  const browsers = host(server, site)
  const project = await server.project()
  const body = { name: 'stored', domain: 'site.test', values: { username: user, password }, totp_secret: totpSecret }
  assert.equal((await project.call('POST', '/credentials', body)).status, 201)
  const { id } = await connect(project, { credential: { name: 'stored' }, ...more })
  await login(project, id)
  return { browsers, project, id }
}

test('the model chooses if the page is ambiguous, and receives no value of the login', async () => {
  answer = pick('c1')

  const { browsers, project, id } = await begin()
  const done = await until(project, id, isOver)

  assert.equal(done.flow_status, 'SUCCESS', JSON.stringify(done))
  assert.equal(browsers[0]?.chosen.length, 1)
  assert.equal(asked.length, 1)
  const [request = ''] = asked
  assert.match(request, /^\/v1\/chat\/completions .*Bearer model-key.*"model":"small"/)
  assert.match(request, /Private\/‹username›/)
  for (const secret of [user, password, encodeURIComponent(password), totpSecret, '123456', 'tttt'])
    assert.ok(!request.toLowerCase().includes(secret.toLowerCase()), `${secret} is in ${request}`)
  // Choices that the model must not decide are not offered.
  assert.ok(!request.includes('Acme') && !request.includes('I agree'))
})

const failures: readonly (readonly [how: string, RequestListener])[] = [
  ['chooses nothing', pick(null)],
  ['chooses what was not offered', pick('c2')],
  ['chooses what there is not', pick('c99')],
  ['answers with no JSON', (_request, response) => response.end(says('Press the second one.'))],
  ['answers with an error', (_request, response) => response.writeHead(500).end()],
  ['leads elsewhere', (_request, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()],
  ['breaks off', (request) => request.socket.destroy()],
  ['answers with too much', (_request, response) => response.end(says('x'.repeat(300_000)))],
]

for (const [how, listener] of failures) {
  test(`a model that ${how} leaves the choice to a person`, async () => {
    answer = listener

    const { browsers, project, id } = await begin()
    const { choices } = await until(project, id, isAsking)
    assert.deepEqual(browsers[0]?.chosen, [])
    await submit(project, id, { selected_choice_id: 'c1' })
    const done = await until(project, id, isOver)

    assert.equal(choices?.length, 4)
    assert.deepEqual([done.flow_status, asked.length], ['SUCCESS', 1])
  })
}

test('the same choice is made only once, so a wrong one causes no loop', async () => {
  answer = pick('c0')

  const { browsers, project, id } = await begin()
  await until(project, id, isAsking)

  assert.deepEqual(browsers[0]?.chosen, ['Work'])
  await project.call('DELETE', `/auth/connections/${id}`)
})

test('without stored values, a person is asked and not the model', async () => {
  answer = pick('c1')
  host(server, { ...site, first: 'accounts' })
  const project = await server.project()
  const { id } = await connect(project)

  await login(project, id)
  await until(project, id, isAsking)

  assert.deepEqual(asked, [])
  assert.equal((await read(project, id)).flow_step, 'AWAITING_INPUT')
  await project.call('DELETE', `/auth/connections/${id}`)
})
