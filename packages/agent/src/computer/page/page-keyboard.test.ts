import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keysNamed } from '../keys.ts'
import { PageKeyboard } from './page-keyboard.ts'

/** The events of keys that are pressed in order and released in reverse order. */
function eventsOf(name: string): readonly string[] {
  const keyboard = new PageKeyboard()
  const keys = keysNamed(name, 'keys.0')
  const events = [
    ...keys.flatMap((key) => keyboard.press(key)),
    ...keys.toReversed().flatMap((key) => keyboard.release(key)),
  ]
  assert.equal(keyboard.modifiers, 0)
  return events.map(({ type, key, code, modifiers, text }) =>
    [type, key, code, modifiers, ...(text === undefined ? [] : [JSON.stringify(text)])].join(' '),
  )
}

test('a letter is text, and a capital letter includes Shift', () => {
  assert.deepEqual(eventsOf('a'), ['keyDown a KeyA 0 "a"', 'keyUp a KeyA 0'])
  assert.deepEqual(eventsOf('A'), [
    'rawKeyDown Shift ShiftLeft 8',
    'keyDown A KeyA 8 "A"',
    'keyUp A KeyA 8',
    'keyUp Shift ShiftLeft 0',
  ])
})

test('with a modifier, a key is a command and not text', () => {
  assert.deepEqual(eventsOf('ctrl+shift+e'), [
    'rawKeyDown Control ControlLeft 2',
    'rawKeyDown Shift ShiftLeft 10',
    'rawKeyDown E KeyE 10',
    'keyUp E KeyE 10',
    'keyUp Shift ShiftLeft 2',
    'keyUp Control ControlLeft 0',
  ])
})

test('keys that enter nothing, and characters that no key enters', () => {
  assert.deepEqual(eventsOf('Return'), ['keyDown Enter Enter 0 "\\r"', 'keyUp Enter Enter 0'])
  assert.deepEqual(eventsOf('Page_Down'), ['rawKeyDown PageDown PageDown 0', 'keyUp PageDown PageDown 0'])
  assert.deepEqual(eventsOf('é'), ['keyDown é  0 "é"', 'keyUp é  0'])
})
