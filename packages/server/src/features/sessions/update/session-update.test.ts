import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import { operationalCategories } from '@berth/contract/browsers/telemetry-config.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { FakeAgent } from '../../../testing/fakes/fake-agent.ts'
import { TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

const operational = Object.fromEntries(operationalCategories.map((category) => [category, { enabled: true }]))
const allOff = Object.fromEntries(operationalCategories.map((category) => [category, { enabled: false }]))
const console = { console: { enabled: true } }
const excluded = (...methods: string[]) => ({ control: { cdp: { excluded_methods: methods } } })

interface Rule {
  readonly rule: string
  /** The settings with which the session is created. */
  readonly from?: object
  readonly update: object
  /** Fields of the response, and of every later read. */
  readonly to: Record<string, unknown>
}

/** The rules of an update, one row each. */
const accepted: readonly Rule[] = [
  {
    rule: 'an empty update changes nothing',
    from: { name: 'a', tags: { k: 'v' } },
    update: {},
    to: { name: 'a', tags: { k: 'v' } },
  },
  { rule: 'an unknown field is ignored', from: { name: 'b' }, update: { colour: 'red' }, to: { name: 'b' } },

  { rule: 'name: a name is set', update: { name: 'Z.z_-9' }, to: { name: 'Z.z_-9' } },
  { rule: 'name: 255 characters are not too many', update: { name: 'n'.repeat(255) }, to: { name: 'n'.repeat(255) } },
  { rule: 'name: absent leaves it', from: { name: 'c' }, update: { tags: {} }, to: { name: 'c' } },
  { rule: 'name: null leaves it', from: { name: 'd' }, update: { name: null }, to: { name: 'd' } },
  { rule: 'name: an empty string clears it', from: { name: 'e' }, update: { name: '' }, to: { name: undefined } },
  { rule: 'name: its own name is not taken', from: { name: 'f' }, update: { name: 'f' }, to: { name: 'f' } },

  {
    rule: 'tags: absent leaves them',
    from: { tags: { k: 'v' } },
    update: { name: 'g' },
    to: { name: 'g', tags: { k: 'v' } },
  },
  { rule: 'tags: null leaves them', from: { tags: { k: 'v' } }, update: { tags: null }, to: { tags: { k: 'v' } } },
  {
    rule: 'tags: a map replaces all of them',
    from: { tags: { k: 'v', l: 'w' } },
    update: { tags: { l: '' } },
    to: { tags: { l: '' } },
  },
  { rule: 'tags: an empty map clears them', from: { tags: { k: 'v' } }, update: { tags: {} }, to: { tags: undefined } },

  {
    rule: 'start_url: it is recorded as asked',
    update: { start_url: 'no such address' },
    to: { start_url: 'no such address' },
  },
  {
    rule: 'start_url: 2048 characters are not too many',
    update: { start_url: 'x'.repeat(2048) },
    to: { start_url: 'x'.repeat(2048) },
  },
  {
    rule: 'start_url: absent leaves it',
    from: { start_url: 'about:blank#1' },
    update: {},
    to: { start_url: 'about:blank#1' },
  },
  {
    rule: 'start_url: an empty string leaves it',
    from: { start_url: 'about:blank#2' },
    update: { start_url: '' },
    to: { start_url: 'about:blank#2' },
  },

  {
    rule: 'viewport: absent leaves it',
    from: { viewport: { width: 7, height: 9 } },
    update: {},
    to: { viewport: { width: 7, height: 9, refresh_rate: 60 } },
  },
  {
    rule: 'viewport: the rate is taken',
    update: { viewport: { width: 1280, height: 800, refresh_rate: 144 } },
    to: { viewport: { width: 1280, height: 800, refresh_rate: 144 } },
  },
  {
    rule: 'viewport: a rate that is not given is derived',
    update: { viewport: { width: 1281, height: 801 } },
    to: { viewport: { width: 1281, height: 801, refresh_rate: 25 } },
  },
  {
    rule: 'viewport: larger sizes derive lower rates',
    update: { viewport: { width: 2560, height: 1440, force: false } },
    to: { viewport: { width: 2560, height: 1440, refresh_rate: 10 } },
  },
  {
    rule: 'viewport: force is not part of it',
    update: { viewport: { width: 1, height: 1, force: true } },
    to: { viewport: { width: 1, height: 1, refresh_rate: 60 } },
  },
  {
    rule: 'viewport: any positive size is recorded as asked',
    update: { viewport: { width: 50_000, height: 3 } },
    to: { viewport: { width: 50_000, height: 3, refresh_rate: 60 } },
  },

  ...[undefined, null, {}].map((telemetry) => ({
    rule: `telemetry 1: ${JSON.stringify(telemetry)} leaves it`,
    from: { telemetry: { browser: console } },
    update: { telemetry },
    to: { telemetry: captured({ ...operational, ...console }) },
  })),
  { rule: 'telemetry 1: nothing stays nothing', update: { telemetry: {} }, to: { telemetry: null } },
  {
    rule: 'telemetry 2: enabled resolves anew from the default set',
    from: { telemetry: { browser: { ...console, captcha: { enabled: false } } } },
    update: { telemetry: { enabled: true } },
    to: { telemetry: captured(operational) },
  },
  {
    rule: 'telemetry 2: with the categories that are given',
    from: { telemetry: { browser: console } },
    update: { telemetry: { enabled: true, browser: { page: { enabled: true }, system: { enabled: false } } } },
    to: { telemetry: captured({ ...operational, page: { enabled: true }, system: { enabled: false } }) },
  },
  {
    rule: 'telemetry 2: also where nothing is captured',
    update: { telemetry: { enabled: true } },
    to: { telemetry: captured(operational) },
  },
  {
    rule: 'telemetry 3: disabled stops',
    from: { telemetry: { enabled: true } },
    update: { telemetry: { enabled: false } },
    to: { telemetry: null },
  },
  {
    rule: 'telemetry 4: categories merge onto what is captured',
    from: { telemetry: { browser: { ...console, captcha: { enabled: false } } } },
    update: { telemetry: { browser: { network: { enabled: true } } } },
    to: {
      telemetry: captured({ ...operational, ...console, captcha: { enabled: false }, network: { enabled: true } }),
    },
  },
  {
    rule: 'telemetry 4: else onto the default set',
    update: { telemetry: { browser: console } },
    to: { telemetry: captured({ ...operational, ...console }) },
  },
  {
    rule: 'telemetry 4: an absent list of excluded methods keeps the present one',
    from: { telemetry: { browser: excluded('Page.navigate') } },
    update: { telemetry: { browser: { control: { enabled: false, cdp: {} } } } },
    to: { telemetry: captured({ ...operational, control: { enabled: false, ...excluded('Page.navigate').control } }) },
  },
  {
    rule: 'telemetry 4: a list replaces it, and leaves control on or off',
    from: { telemetry: { browser: { control: { enabled: false, ...excluded('Page.navigate').control } } } },
    update: { telemetry: { browser: excluded('Page.reload', 'Page.close') } },
    to: {
      telemetry: captured({
        ...operational,
        control: { enabled: false, ...excluded('Page.reload', 'Page.close').control },
      }),
    },
  },
  {
    rule: 'telemetry 4: an empty list reports every method again',
    from: { telemetry: { browser: excluded('Page.navigate') } },
    update: { telemetry: { browser: excluded() } },
    to: { telemetry: captured({ ...operational, control: { enabled: true, ...excluded().control } }) },
  },
  {
    rule: 'telemetry 5: all four off, and nothing else on, stops',
    from: { telemetry: { enabled: true } },
    update: { telemetry: { browser: allOff } },
    to: { telemetry: null },
  },
  {
    rule: 'telemetry 5: another category that is on goes on',
    from: { telemetry: { browser: console } },
    update: { telemetry: { browser: allOff } },
    to: { telemetry: captured({ ...allOff, ...console }) },
  },
  {
    rule: 'telemetry 6: export is ignored, also where it could not be used',
    from: { telemetry: { enabled: true } },
    update: { telemetry: { export: { otlp: { destination: { id: 'nobody' } } } } },
    to: { telemetry: captured(operational) },
  },
  {
    rule: 'telemetry 7: storage may be on',
    from: { telemetry: { enabled: true } },
    update: { telemetry: { storage: { enabled: true } } },
    to: { telemetry: captured(operational) },
  },
]

/** The invalid update, and the field that the error names. */
const refused: readonly (readonly [rule: string, update: unknown, field: string])[] = [
  ['name: 256 characters', { name: 'n'.repeat(256) }, 'name'],
  ['name: a space', { name: 'a b' }, 'name'],
  ['name: a number', { name: 7 }, 'name'],
  ['tags: 51 pairs', { tags: Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`k${index}`, ''])) }, 'tags'],
  ['tags: a number as value', { tags: { k: 1 } }, 'tags.k'],
  ['start_url: 2049 characters', { start_url: 'x'.repeat(2049) }, 'start_url'],
  ['start_url: null', { start_url: null }, 'start_url'],
  ['viewport: without height', { viewport: { width: 1 } }, 'viewport.height'],
  ['viewport: a width of 0', { viewport: { width: 0, height: 1 } }, 'viewport.width'],
  ['viewport: half a pixel', { viewport: { width: 1.5, height: 1 } }, 'viewport.width'],
  ['viewport: a rate of 0', { viewport: { width: 1, height: 1, refresh_rate: 0 } }, 'viewport.refresh_rate'],
  ['viewport: force as text', { viewport: { width: 1, height: 1, force: 'yes' } }, 'viewport.force'],
  ['viewport: null', { viewport: null }, 'viewport'],
  ['telemetry 3: disabled, with categories', { telemetry: { enabled: false, browser: {} } }, 'telemetry.browser'],
  ['telemetry 4: an unknown method', { telemetry: { browser: excluded('Page.enable') } }, 'telemetry.browser.control'],
  [
    'telemetry 6: an export that is malformed',
    { telemetry: { export: { otlp: { destination: {} } } } },
    'telemetry.export',
  ],
  [
    'telemetry 6: an export that contradicts itself',
    { telemetry: { export: { otlp: { enabled: false, destination: { id: 'x' } } } } },
    'telemetry.export',
  ],
  ['telemetry 7: without storage', { telemetry: { storage: { enabled: false } } }, 'telemetry.storage'],
  [
    'one fault among what is right',
    { name: 'right', tags: { k: 'v' }, viewport: { width: -1, height: 1 } },
    'viewport.width',
  ],
  ['a body that is absent', undefined, 'body'],
  ['a body that is null', null, 'body'],
  ['a body that is an array', [], 'body'],
  ['a body that is a number', 1, 'body'],
  ['a body that is text', 'x', 'body'],
]

test('an update follows the rules, and later reads return the same as its response', async (context) => {
  const project = await server.project()
  for (const { rule, from, update, to } of accepted) {
    await context.test(rule, async () => {
      const before = await project.session({ headless: true, ...from })

      const { status, body } = await project.call('PATCH', `/browsers/${before.session_id}`, update)

      assert.equal(status, 200, JSON.stringify(body))
      assert.deepEqual(steady(body), steady({ ...before, ...to } as Browser))
      const read = await project.call('GET', `/browsers/${before.session_id}`)
      const listed = await project.call<Browser[]>('GET', '/browsers?limit=100')
      assert.deepEqual(steady(read.body), steady(body))
      assert.deepEqual(
        listed.body.map(steady).filter(({ session_id }) => session_id === before.session_id),
        [steady(body)],
      )
      await project.call('DELETE', `/browsers/${before.session_id}`)
    })
  }
})

test('an invalid update is rejected with the name of the field, and changes nothing', async (context) => {
  const project = await server.project()
  const session = await project.session({ headless: true, name: 'kept', telemetry: { enabled: true } })
  for (const [rule, update, field] of refused) {
    await context.test(rule, async () => {
      const { status, body } = await project.call<{ code: string; message: string }>('PATCH', '/browsers/kept', update)

      assert.equal(status, 400)
      assert.equal(body.code, 'invalid_input')
      assert.ok(body.message.startsWith(field), body.message)
      assert.deepEqual(steady((await project.call('GET', '/browsers/kept')).body), steady(session))
    })
  }
  assert.deepEqual(agentOf(session).viewports, [])
})

test('the browser gets the requested size, up to the largest possible one, and navigates after the row is written', async () => {
  const project = await server.project()
  const session = await project.session()
  const agent = agentOf(session)

  await project.call('PATCH', `/browsers/${session.session_id}`, {
    viewport: { width: 801, height: 603 },
    start_url: 'about:blank#1',
  })
  await project.call('PATCH', `/browsers/${session.session_id}`, {
    viewport: { width: 50_000, height: 3 },
    start_url: '',
  })

  assert.deepEqual(agent.viewports, [
    { width: 801, height: 603, refresh_rate: 60 },
    { width: 10_000, height: 3, refresh_rate: 60 },
  ])
  assert.deepEqual(agent.navigations, ['about:blank#1'])
})

test('a navigation that the agent rejects does not fail the update', async () => {
  const project = await server.project()
  const session = await project.session()
  agentOf(session).navigations.push = () => {
    throw new Error('no page')
  }

  const { status, body } = await project.call('PATCH', `/browsers/${session.session_id}`, { start_url: 'about:blank' })

  assert.deepEqual([status, body.start_url], [200, 'about:blank'])
})

function captured(browser: object): object {
  const others = ['console', 'network', 'page', 'interaction', 'screenshot', 'platform']
  const off = Object.fromEntries(others.map((category) => [category, { enabled: false }]))
  return { browser: { ...off, ...browser }, export: { otlp: { enabled: false } }, storage: { enabled: true } }
}

function agentOf({ session_id }: Browser): FakeAgent {
  return server.host.agentOf(session_id as SessionId)
}

/** Removes fields that differ between two reads, and absent ones. */
function steady({ usage: _usage, ...record }: Browser): Omit<Browser, 'usage'> {
  return JSON.parse(JSON.stringify(record))
}
