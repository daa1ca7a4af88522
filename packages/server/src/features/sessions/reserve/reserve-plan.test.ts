import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ReserveKind } from './reserve-kind.ts'
import { parseReserve, planSizes, type ReserveSizes } from './reserve-plan.ts'

const gibibyte = 1024 ** 3

const texts: Readonly<Record<string, ReturnType<typeof parseReserve>>> = {
  off: 'off',
  auto: 'auto',
  'headless=2': { headless: 2 },
  'headless=2, headful-stealth=0': { headless: 2, 'headful-stealth': 0 },
  '': undefined,
  on: undefined,
  'headless=2,headless=3': undefined,
  'headless=-1': undefined,
  'headless=1000': undefined,
  'gpu=1': undefined,
  'toString=1': undefined,
}

for (const [text, config] of Object.entries(texts)) {
  test(`BERTH_RESERVE=${text} is ${config ? JSON.stringify(config) : 'refused'}`, () => {
    assert.deepEqual(parseReserve(text), config)
  })
}

interface PlanCase {
  readonly freeGibibytes: number
  readonly created: Readonly<Partial<Record<ReserveKind, number>>>
  readonly secondsAgo?: number
  /** The time since an app last needed a machine. */
  readonly appSecondsAgo?: number
  readonly sizes: ReserveSizes
}

const plans: Readonly<Record<string, PlanCase>> = {
  'one of each common kind where nothing is created': {
    freeGibibytes: 8,
    created: {},
    sizes: { headless: 1, headful: 1 },
  },
  'nothing where less than 4 GiB are free': { freeGibibytes: 3.9, created: { headless: 9 }, sizes: {} },
  'more of what is created': { freeGibibytes: 16, created: { headless: 9 }, sizes: { headless: 4, headful: 1 } },
  'a kind that is not common, when it is created': {
    freeGibibytes: 16,
    created: { 'headful-stealth': 1 },
    sizes: { headless: 1, headful: 1, 'headful-stealth': 1 },
  },
  'as before, when the creates are long ago': {
    freeGibibytes: 16,
    created: { headless: 9 },
    secondsAgo: 181,
    sizes: { headless: 1, headful: 1 },
  },
  'one for apps as long as they are served': {
    freeGibibytes: 8,
    created: {},
    appSecondsAgo: 23 * 3600,
    sizes: { headless: 1, headful: 1, app: 1 },
  },
  'none for apps a day later': {
    freeGibibytes: 8,
    created: {},
    appSecondsAgo: 25 * 3600,
    sizes: { headless: 1, headful: 1 },
  },
  'no more than eight of a kind': {
    freeGibibytes: 100,
    created: { headless: 1000 },
    sizes: { headless: 8, headful: 1 },
  },
  'no more than a quarter of the free memory': {
    freeGibibytes: 4,
    created: { headless: 1000, headful: 1000 },
    sizes: { headless: 3, headful: 1 },
  },
}

for (const [what, { freeGibibytes, created, secondsAgo = 0, appSecondsAgo, sizes }] of Object.entries(plans)) {
  test(`auto keeps ${what}`, () => {
    const creates = Object.entries(created).flatMap(([kind, count]) =>
      Array.from({ length: count }, () => ({ kind: kind as ReserveKind, milliseconds: 0 })),
    )

    const planned = planSizes('auto', {
      creates,
      ...(appSecondsAgo !== undefined && { appMilliseconds: (secondsAgo - appSecondsAgo) * 1000 }),
      nowMilliseconds: secondsAgo * 1000,
      freeBytes: freeGibibytes * gibibyte,
    })

    assert.deepEqual(planned, sizes)
  })
}

test('configured counts are kept regardless of free memory, and off keeps none', () => {
  const facts = { creates: [], nowMilliseconds: 0, freeBytes: 0 }

  assert.deepEqual(planSizes({ headless: 3 }, facts), { headless: 3 })
  assert.deepEqual(planSizes('off', { ...facts, freeBytes: 100 * gibibyte }), {})
})
