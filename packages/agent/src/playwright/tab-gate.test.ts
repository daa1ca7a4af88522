import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { TabGate } from './tab-gate.ts'

interface Message {
  readonly id?: number
  readonly method?: string
  readonly sessionId?: string
}

/** A gate between two ends that only record messages; the client has attached to all tabs. */
function startGate(targetId?: string) {
  const [toChromium, toClient]: [Message[], Message[]] = [[], []]
  const gate = new TabGate({
    targetId,
    tabLimitMilliseconds: 5_000,
    toChromium: (text) => toChromium.push(JSON.parse(text)),
    toClient: (text) => toClient.push(JSON.parse(text)),
  })
  gate.fromClient(JSON.stringify({ id: 2, method: 'Target.setAutoAttach', params: {} }))
  return {
    gate,
    /** Messages to the client: events with their session, responses with their id. */
    told: () =>
      toClient.map(({ id, params }: Message & { params?: { sessionId?: string } }) => id ?? params?.sessionId),
    attach: (name: string, waitingForDebugger = false) =>
      gate.fromChromium(
        JSON.stringify({
          method: 'Target.attachedToTarget',
          params: { sessionId: name, targetInfo: { targetId: `t-${name}`, type: 'page' }, waitingForDebugger },
        }),
      ),
    answerFirst: () => gate.fromChromium('{"id":2,"result":{}}'),
    answerProbe(name: string) {
      const asked = toChromium.find(({ method, sessionId }) => method === 'Runtime.evaluate' && sessionId === name)
      gate.fromChromium(`{"id":${asked?.id},"result":{},"sessionId":"${name}"}`)
    },
    resumed: () =>
      toChromium.filter(({ method }) => method === 'Runtime.runIfWaitingForDebugger').map(({ sessionId }) => sessionId),
  }
}

test('tabs are announced when they respond, and the client waits for all that do', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const { told, attach, answerFirst, answerProbe } = startGate()
  attach('one')
  attach('two')
  answerFirst()
  assert.deepEqual(told(), [])

  answerProbe('two')
  answerProbe('one')

  assert.deepEqual(told(), ['two', 'one', 2])
  mock.timers.reset()
})

test('a tab that does not respond is left out, and announced when it does', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const { told, attach, answerFirst, answerProbe } = startGate()
  attach('well')
  attach('stuck')
  answerFirst()
  answerProbe('well')
  mock.timers.tick(500)

  assert.deepEqual(told(), ['well', 2])
  answerProbe('stuck')
  assert.deepEqual(told(), ['well', 2, 'stuck'])
  mock.timers.reset()
})

test('the target tab of the call gets more time', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const { told, attach, answerFirst, answerProbe } = startGate('t-mine')
  attach('mine')
  answerFirst()
  mock.timers.tick(4_000)
  assert.deepEqual(told(), [])

  answerProbe('mine')

  assert.deepEqual(told(), ['mine', 2])
  mock.timers.reset()
})

test('a tab that closes before it has responded is never announced', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const { gate, told, attach, answerFirst } = startGate()
  attach('gone')
  answerFirst()
  gate.fromChromium('{"method":"Target.detachedFromTarget","params":{"sessionId":"gone"}}')

  assert.deepEqual(told(), [2])
  mock.timers.reset()
})

test('a new target does not wait for a client that resumes nothing', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const { gate, told, attach, resumed } = startGate()
  attach('quick', true)
  attach('slow', true)
  assert.deepEqual(told(), ['quick', 'slow'])
  gate.fromClient('{"id":3,"method":"Runtime.runIfWaitingForDebugger","sessionId":"quick"}')

  mock.timers.tick(1_000)

  assert.deepEqual(resumed(), ['quick', 'slow'])
  mock.timers.reset()
})
