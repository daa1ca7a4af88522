import assert from 'node:assert/strict'
import test from 'node:test'
import { BrowserTelemetryRequestConfig, operationalCategories } from '@berth/contract/browsers/telemetry-config.ts'
import { selectTelemetry } from './telemetry-selection.ts'

function captured(request: unknown): string[] {
  const selection = selectTelemetry(BrowserTelemetryRequestConfig.nullish().parse(request))
  return Object.entries(selection?.browser ?? {}).flatMap(([category, config]) => (config?.enabled ? [category] : []))
}

for (const request of [undefined, null, {}, { enabled: false }]) {
  test(`captures nothing when a create asks for ${JSON.stringify(request)}`, () => {
    assert.equal(selectTelemetry(request), null)
  })
}

test('captures the operational categories when capture is enabled', () => {
  assert.deepEqual(captured({ enabled: true }), [...operationalCategories])
})

test('merges categories into the default set, with and without enabled', () => {
  const expected = ['control', 'connection', 'system', 'console']
  const browser = { console: { enabled: true }, captcha: { enabled: false } }

  assert.deepEqual(captured({ enabled: true, browser }), expected)
  assert.deepEqual(captured({ browser }), expected)
})

test('captures nothing when every operational category is off and no other is on', () => {
  const browser = Object.fromEntries(operationalCategories.map((category) => [category, { enabled: false }]))

  assert.equal(selectTelemetry({ browser }), null)
  assert.deepEqual(captured({ browser: { ...browser, page: { enabled: true } } }), ['page'])
})

test('keeps the excluded CDP methods independent of whether control is captured', () => {
  const cdp = { excluded_methods: ['Input.dispatchMouseEvent' as const] }

  const on = selectTelemetry({ browser: { control: { cdp } } })
  const off = selectTelemetry({ browser: { control: { cdp, enabled: false } } })

  assert.deepEqual(on?.browser.control, { enabled: true, cdp })
  assert.deepEqual(off?.browser.control, { enabled: false, cdp })
})

for (const [request, field] of [
  [{ enabled: false, browser: { console: { enabled: true } } }, 'browser'],
  [{ enabled: true, storage: { enabled: false } }, 'storage'],
  [{ export: { otlp: { enabled: false, destination: { id: 'x' } } } }, 'export'],
  [{ export: { otlp: { destination: {} } } }, 'export'],
  [{ export: { otlp: { destination: { id: 'x', name: 'y' } } } }, 'export'],
] as const) {
  test(`refuses the contradiction ${JSON.stringify(request)}`, () => {
    const result = BrowserTelemetryRequestConfig.safeParse(request)

    assert.equal(result.error?.issues[0]?.path[0], field)
  })
}
