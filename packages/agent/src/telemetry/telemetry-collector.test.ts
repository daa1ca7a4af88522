import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import type { TelemetryCapture } from '@berth/contract/agent/agent-endpoints.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { CdpPipe } from '../browser/cdp-pipe.ts'
import type { Chromium } from '../browser/chromium.ts'
import { TelemetryCollector } from './telemetry-collector.ts'

const logger = createLogger({ name: 'test', level: 'silent', json: true })

async function capturing(...categories: TelemetryCapture['categories']): Promise<TelemetryCollector> {
  const collector = new TelemetryCollector(systemClock, logger)
  await collector.configure({ categories, excluded_methods: [] })
  return collector
}

test('a Chromium whose pages cannot be observed is reported', async () => {
  const collector = await capturing('console')
  const output = new PassThrough()
  const pipe = new CdpPipe(new PassThrough(), output)
  const closed = once(output, 'close')
  output.destroy()
  await closed

  await collector.attachTo({ pipe, ended: new Promise(() => {}) } as unknown as Chromium)

  const { value: records } = await collector.follow(undefined, AbortSignal.timeout(60_000)).next()
  const record = JSON.parse(records?.[0])
  assert.deepEqual([record.event.type, record.event.data], ['monitor_init_failed', { step: 'attach' }])
})

test('every event above the rate limit is counted as lost', async () => {
  const collector = await capturing('control')
  const emitted = Array.from({ length: 6_000 }, (_, index) =>
    collector.emit({ type: 'api_call', source: { kind: 'kernel_api' }, data: { index } }),
  )

  const taken = emitted.filter(Boolean).length
  assert.ok(taken >= 5_000 && taken < 6_000, String(taken))
  let [events, lost] = [0, 0]
  reading: for await (const records of collector.follow(undefined, AbortSignal.timeout(60_000))) {
    for (const record of records.map((text) => JSON.parse(text))) {
      if ('lost' in record) lost += record.lost
      else events += 1
      if (record.sequence === emitted.length) break reading
    }
  }
  assert.deepEqual([events, lost], [taken, emitted.length - taken])
})
