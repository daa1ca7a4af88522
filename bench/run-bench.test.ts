import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asJson, asTables } from './report.ts'
import { runBench } from './run-bench.ts'

test('a short run measures every service, and reports the same as tables and as JSON', async () => {
  const begun: string[] = []

  const report = await runBench({
    names: ['evaluate', 'growth'],
    rounds: 1,
    maxSessions: 1,
    idleSeconds: 0.1,
    onBegin: (name) => begun.push(name),
    signal: new AbortController().signal,
  })
  const tables = asTables(report)
  const { budgets, figures } = JSON.parse(asJson(report))

  assert.deepEqual(begun, ['evaluate', 'growth'])
  for (const service of ['bare Chromium', 'berth']) {
    const own = report.figures.all.filter((figure) => figure.service === service)
    assert.ok(own.every(({ p50, p95, p99 }) => p50 >= 0 && p95 >= p50 && p99 >= p95))
    assert.equal(report.figures.find(service, 'Runtime.evaluate round trip')?.samples, 100)
    const browser = report.figures.find(service, 'growth, 1 sessions: memory of all per session, Chromium')
    assert.ok(browser && browser.p50 > 50, 'a Chromium takes more than 50 MiB')
  }
  assert.match(
    tables,
    /^\| Runtime\.evaluate, p50, to direct +\| berth +\| \S+ times +\| 1\.50 times +\| (holds|DOES NOT HOLD)/m,
  )
  assert.equal(budgets.length, report.verdicts.length)
  assert.equal(figures.length, report.figures.all.length)
})
