import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isReadOnlyView } from './live-view-query.ts'

test('a view is read-only if any value requests it, and invalid values are rejected', () => {
  const readOnly = [
    'readOnly=true',
    'readonly=true',
    'readOnly=false&readOnly=true',
    'a=b&READONLY=true',
    'read%4fnly=true',
  ]
  for (const query of readOnly) assert.equal(isReadOnlyView(`/s/x/live?jwt=a&${query}`), true, query)
  for (const query of ['', 'readOnly=false', 'other=true']) assert.equal(isReadOnlyView(`/live?${query}`), false, query)
  for (const query of ['readOnly', 'readOnly=1', 'readOnly=TRUE', 'readOnly=true&readOnly=yes']) {
    assert.throws(() => isReadOnlyView(`/live?${query}`), /readOnly: must be true or false/, query)
  }
})
