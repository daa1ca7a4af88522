import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { CaptchaOutcome } from '@berth/contract/agent/agent-endpoints.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { TestServer } from '../../../testing/server-test.ts'

/** The requests to the operator's service. */
const asked: { readonly headers: IncomingMessage['headers']; readonly body: Record<string, unknown> }[] = []
let answer: RequestListener = (_request, response) => response.end(JSON.stringify({ token: 'the token' }))
const solver = createServer(async (request, response) => {
  let text = ''
  for await (const chunk of request) text += chunk
  asked.push({ headers: request.headers, body: JSON.parse(text) })
  answer(request, response)
})
solver.listen(0, '127.0.0.1')
await once(solver, 'listening')
const { port } = solver.address() as AddressInfo

const server = await TestServer.open({
  captchaSolver: { url: `http://127.0.0.1:${port}/solve`, key: 'the key', limitMilliseconds: 300 },
})
after(async () => {
  await server.close()
  solver.closeAllConnections()
  solver.close()
})
const project = await server.project()

const agentOf = ({ session_id }: Browser) => server.host.agentOf(session_id as SessionId)
const stealthy = () => project.session({ headless: true, stealth: true })

let lastTask = 0
function find(session: Browser): string {
  const task_id = `task-${++lastTask}`
  const task = { type: 'hcaptcha', site_key: 'the-key-of-the-site', page_url: 'https://shop.test/login' } as const
  agentOf(session).events.append({ event: 'captcha_found', task_id, ...task, at: Date.now() })
  return task_id
}

async function outcomeOf(session: Browser, taskId: string): Promise<CaptchaOutcome> {
  for (let tries = 0; tries < 600; tries++) {
    const found = agentOf(session).captchaAnswers.find(({ task_id }) => task_id === taskId)
    if (found) return found.outcome
    await delay(20)
  }
  throw new Error('the agent got no answer')
}

test('the service receives a captcha, and the agent gets its token', async () => {
  const session = await stealthy()
  const taskId = find(session)

  assert.deepEqual(await outcomeOf(session, taskId), { status: 'solved', token: 'the token' })
  assert.equal(asked.at(-1)?.headers.authorization, 'Bearer the key')
  assert.deepEqual(asked.at(-1)?.body, {
    task_id: taskId,
    type: 'hcaptcha',
    site_key: 'the-key-of-the-site',
    page_url: 'https://shop.test/login',
    session_id: session.session_id,
  })
})

test('accepts the documented responses of the service', async () => {
  const session = await stealthy()
  const failure = (error_code: string) => ({ status: 'failure', error_code })
  const answers: readonly (readonly [string, RequestListener, object])[] = [
    [
      'a code',
      (_request, response) => response.writeHead(422).end('{"error_code":"unsolvable"}'),
      failure('unsolvable'),
    ],
    [
      'a code of another form',
      (_request, response) => response.writeHead(422).end('{"error_code":"No!"}'),
      failure('solver_refused'),
    ],
    ['an error', (_request, response) => response.writeHead(500).end('<html>'), failure('solver_refused')],
    ['no token', (_request, response) => response.end('{}'), failure('solver_failed')],
    [
      'an endless token',
      (_request, response) => response.end(JSON.stringify({ token: 'x'.repeat(17_000) })),
      failure('solver_failed'),
    ],
    ['too much', (_request, response) => response.end('x'.repeat(100_000)), failure('solver_failed')],
    [
      'another place',
      (_request, response) => response.writeHead(302, { location: '/elsewhere' }).end(),
      failure('solver_failed'),
    ],
    ['the end of the connection', (request) => request.socket.destroy(), failure('solver_failed')],
    ['nothing', () => {}, { status: 'timeout' }],
  ]
  for (const [name, listener, expected] of answers) {
    answer = listener
    assert.deepEqual(await outcomeOf(session, find(session)), expected, name)
  }
})

test('a session has four captchas solved at a time, and sixty in an hour', async () => {
  const session = await stealthy()
  const waiting: (() => void)[] = []
  answer = (_request, response) => void waiting.push(() => response.end('{"token":"t"}'))
  const tasks = Array.from({ length: 5 }, () => find(session))

  assert.deepEqual(await outcomeOf(session, tasks[4] ?? ''), { status: 'failure', error_code: 'solver_busy' })
  answer = (_request, response) => response.end('{"token":"t"}')
  for (const taskId of tasks.slice(0, 4)) await outcomeOf(session, taskId)
  const { captchas } = server.services
  const solve = (count: number) =>
    Promise.all(
      Array.from({ length: count }, () =>
        captchas.take(session.session_id as SessionId, {
          task_id: `task-${++lastTask}`,
          type: 'turnstile',
          site_key: 'k',
          page_url: 'https://shop.test/',
        }),
      ),
    )
  for (let round = 0; round < 14; round++) await solve(4)
  await solve(1)
  const last = () => agentOf(session).captchaAnswers.at(-1)?.outcome
  assert.deepEqual(last(), { status: 'failure', error_code: 'solver_limit_reached' })

  server.clock.advance(3_601)
  await solve(1)
  assert.deepEqual(last(), { status: 'solved', token: 't' })
})

test('the end of a session aborts the requests to the service', async () => {
  const session = await stealthy()
  const cut = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  answer = (request) => {
    request.socket.once('close', cut.resolve)
    begun.resolve()
  }
  find(session)
  await begun.promise

  await project.call('DELETE', `/browsers/${session.session_id}`)

  await cut.promise
})

test('sessions without stealth have no captcha solver, as their records show', async () => {
  const plain = await project.session({ headless: true })

  assert.equal(plain.captcha_solver, undefined)
  assert.equal((await stealthy()).captcha_solver, true)
})
