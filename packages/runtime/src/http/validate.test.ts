import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { validate } from './validate.ts'

const Schema = z.strictObject({
  hosts: z.array(z.string()).optional(),
  actions: z.array(z.strictObject({ type: z.enum(['wait', 'go']), wait: z.int().optional() })).optional(),
})

function faultIn(value: unknown): string {
  try {
    validate(Schema, value, 'body')
  } catch (error) {
    return (error as Error).message
  }
  return assert.fail('it was taken')
}

test('names the field, the rule and the kind of the value', () => {
  assert.equal(faultIn({ hosts: ['a', 7] }), 'hosts.1: must be a string, not a number.')
  assert.equal(faultIn({ other: 1 }), 'body: must not have the field other.')
  assert.equal(faultIn(null), 'body: must be an object, not null.')
})

test('names an item of a list with its type, if it has one', () => {
  const wait = { type: 'wait', wait: 'long' }

  assert.equal(
    faultIn({ actions: [{ type: 'go' }, wait] }),
    'actions[1] (wait): wait: must be a number, not a string of 4 characters.',
  )
  assert.equal(faultIn({ actions: [{ type: 'go', now: 1 }] }), 'actions[0] (go): must not have the field now.')
  assert.equal(
    faultIn({ actions: [{ type: 'stay' }] }),
    'actions[0] (stay): type: must be one of wait, go, not a string of 4 characters.',
  )
  assert.equal(faultIn({ actions: [null] }), 'actions.0: must be an object, not null.')
})
