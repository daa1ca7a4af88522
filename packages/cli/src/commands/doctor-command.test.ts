import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { asTable } from './doctor-command.ts'

const fine = { name: 'Memory', verdict: { state: 'ok', fact: 'enough' } } as const
const doubtful = { name: 'Fonts', verdict: { state: 'warning', fact: 'few', cure: 'install some' } } as const
const broken = { name: 'Sandbox', verdict: { state: 'failure', fact: 'not allowed', cure: 'allow it' } } as const

test('shows a line for each finding, and the fix below failed ones', () => {
  const table = stripVTControlCharacters(asTable([fine, broken]))

  assert.deepEqual(table.split('\n').slice(0, 3), [
    'ok       Memory   enough',
    'FAILURE  Sandbox  not allowed',
    '                  → allow it',
  ])
})

test('ends with the consequences for serve', () => {
  const lastLine = (...findings: Parameters<typeof asTable>[0]) => asTable(findings).trimEnd().split('\n').at(-1)

  assert.equal(lastLine(fine), 'All 1 checks passed.')
  assert.equal(lastLine(fine, doubtful), './berth serve will work here, with warnings for 1 of 2 checks.')
  assert.equal(lastLine(fine, doubtful, broken), '1 of 3 checks failed: ./berth serve will not work here.')
})
