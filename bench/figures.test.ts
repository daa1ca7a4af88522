import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judge } from './budgets.ts'
import { Figures } from './figures.ts'

const hundred = Array.from({ length: 100 }, (_none, index) => index + 1).reverse()

test('higher times and lower rates are worse', () => {
  const figures = new Figures()

  figures.add('a', 'time', 'ms', hundred)
  figures.add('a', 'rate', 'MiB/s', hundred)

  const [time, rate] = figures.all
  assert.deepEqual([time?.p50, time?.p95, time?.p99], [50, 95, 99])
  assert.deepEqual([rate?.p50, rate?.p95, rate?.p99], [51, 6, 2])
})

test('a budget holds up to its limit and not beyond', () => {
  const verdictOf = (own: number) => {
    const figures = new Figures()
    figures.add('bare', 'Runtime.evaluate round trip', 'ms', [2])
    figures.add('own', 'Runtime.evaluate round trip', 'ms', [own])
    return judge(figures, 'bare', ['own']).map(({ service, value, holds }) => [service, value, holds])
  }

  assert.deepEqual(verdictOf(3), [['own', 1.5, true]])
  assert.deepEqual(verdictOf(4), [['own', 2, false]])
})

test('a minimum budget is exceeded by lower values', () => {
  const figures = new Figures()
  figures.add('bare', 'message of 10 MiB to the browser', 'MiB/s', [100])
  figures.add('own', 'message of 10 MiB to the browser', 'MiB/s', [69])

  assert.deepEqual(
    judge(figures, 'bare', ['own']).map(({ value, holds }) => [value, holds]),
    [[69, false]],
  )
})
