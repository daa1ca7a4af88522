import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { ClassicSessions } from './classic-sessions.ts'

const logger = createLogger({ name: 'test', level: 'silent', json: true })
const never = new Promise<never>(() => {})
// The timers of sessions do not keep the process running.
const running = setInterval(() => {}, 1_000)
after(() => clearInterval(running))

interface Limits {
  readonly idleLimit?: number
  readonly startLimit?: number
}

/** With a driver that creates each session when `isLet` resolves, and records the sessions that it is told to end. */
function openSessions(limits: Limits, isLet: Promise<unknown> = Promise.resolve()) {
  let made = 0
  const ended: string[] = []
  const sessions = new ClassicSessions({
    endpoint: async () => ({ port: 9, browserPath: '/', ended: never }),
    homeFolder: '/',
    logger,
    startDriver: async () => ({
      ended: never,
      send: () => never,
      kill() {},
      async ask({ method, path }) {
        if (method === 'DELETE') ended.push(path)
        else await isLet
        const value = { sessionId: String(++made).padStart(32, '0'), capabilities: {} }
        return { status: 200, body: JSON.stringify({ value }) }
      },
    }),
    ...limits,
  })
  return { sessions, ended }
}

async function nextEnd(sessions: ClassicSessions): Promise<string> {
  return new Promise((resolve) => sessions.onEnd(resolve))
}

test('an unused session ends, and a used one does not', async () => {
  const { sessions, ended } = openSessions({ idleLimit: 50 })

  const used = (await sessions.create({ capabilities: {} })).value.sessionId
  const leave = sessions.enter(used)
  const unused = (await sessions.create({ capabilities: {} })).value.sessionId

  assert.equal(await nextEnd(sessions), unused)
  assert.equal(sessions.has(used), true)
  leave()
  assert.equal(await nextEnd(sessions), used)
  assert.deepEqual(ended, [`/session/${unused}`, `/session/${used}`])
})

test('a hanging tab does not delay a new session, and a late session ends at once', async () => {
  const answers = Promise.withResolvers<void>()
  const { sessions, ended } = openSessions({ startLimit: 20 }, answers.promise)

  const refused = sessions.create({ capabilities: {} })
  await assert.rejects(refused, { error: 'session not created', message: /did not answer within 0.02 s/ })
  answers.resolve()
  const late = await nextEnd(sessions)

  assert.deepEqual(ended, [`/session/${late}`])
  assert.equal(sessions.has(late), false)
})

test('after a browser dies during a command, the next browser serves', async () => {
  const died = Promise.withResolvers<string>()
  let asked = 0
  const sessions = new ClassicSessions({
    endpoint: async () => ({ port: 9, browserPath: '/', ended: asked === 0 ? died.promise : never }),
    homeFolder: '/',
    logger,
    startDriver: async () => ({
      ended: never,
      send: () => never,
      kill() {},
      async ask() {
        if (++asked > 1)
          return { status: 200, body: JSON.stringify({ value: { sessionId: 'next', capabilities: {} } }) }
        setTimeout(() => died.resolve('ended by SIGKILL'), 20)
        return { status: 500, body: JSON.stringify({ value: { error: 'session not created', message: 'gone' } }) }
      },
    }),
  })

  assert.equal((await sessions.create({ capabilities: {} })).value.sessionId, 'next')
})
