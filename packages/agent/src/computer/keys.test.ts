import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BerthError } from '@berth/contract/errors.ts'
import { keyOf, keysNamed } from './keys.ts'
import { characterOf, keysymNamed } from './keysyms.ts'

const keysymsOf = (name: string) => keysNamed(name, 'keys.0').map(({ keysym }) => keysym)

test('accepts the key names of X11, of browsers and of users', () => {
  for (const [name, names] of Object.entries({
    Return: ['Return', 'Enter', 'enter', 'RETURN'],
    BackSpace: ['BackSpace', 'Backspace', 'backspace'],
    Escape: ['Escape', 'Esc'],
    Page_Down: ['Page_Down', 'PageDown', 'pgdn', 'Next'],
    Down: ['Down', 'ArrowDown'],
    space: ['space', 'Space', ' '],
    Control_L: ['Ctrl', 'ctrl', 'CONTROL', 'Control_L'],
    Super_L: ['Meta', 'super', 'Cmd', 'Super_L'],
    F5: ['F5', 'f5'],
    minus: ['minus', '-'],
    EuroSign: ['EuroSign'],
  })) {
    for (const other of names) assert.deepEqual(keysymsOf(other), [keysymNamed(name)], other)
  }
})

test('one character names its own key, and its case matters', () => {
  assert.deepEqual(keysymsOf('a'), [0x61])
  assert.deepEqual(keysymsOf('A'), [0x41])
  assert.deepEqual(keysymsOf('é'), [0xe9])
  assert.deepEqual(keysymsOf('日'), [0x0100_65e5])
  assert.deepEqual(keysymsOf('U20AC'), [0x0100_20ac])
})

test('plus signs join keys, and a plus sign can be a key', () => {
  const [control, shift, plus] = [0xffe3, 0xffe1, 0x2b]

  assert.deepEqual(keysymsOf('ctrl+shift+e'), [control, shift, 0x65])
  assert.deepEqual(keysymsOf('Control_L + a'), [control, 0x61])
  assert.deepEqual(keysymsOf('Ctrl+-'), keysymsOf('Ctrl+minus'))
  assert.deepEqual(keysymsOf('+'), [plus])
  assert.deepEqual(keysymsOf('Ctrl++'), [control, plus])
  assert.deepEqual(keysymsOf('Ctrl+Ctrl+a'), [control, 0x61])
})

test('rejects an unknown key, and reports the field and the name', () => {
  const message = (name: string) => {
    try {
      keysNamed(name, 'keys.1')
    } catch (error) {
      assert.ok(error instanceof BerthError && error.status === 400)
      return error.message
    }
    return assert.fail(`${name} was taken`)
  }

  assert.equal(message('NoSuchKey'), 'keys.1: there is no key "NoSuchKey".')
  assert.equal(message(''), 'keys.1: there is no key "".')
  assert.equal(message('Ctrl+'), 'keys.1: there is no key "" in "Ctrl+".')
  assert.equal(message('Ctrl+Foo'), 'keys.1: there is no key "Foo" in "Ctrl+Foo".')
  for (const name of ['constructor', '__proto__', 'toString', 'VoidSymbol', 'U110000', 'UD800', '\u0001']) message(name)
  assert.ok(message('x'.repeat(100_000)).length < 200)
})

test('finds the key of a character, and the character of a key', () => {
  assert.equal(keyOf('\n')?.keysym, keysymNamed('Return'))
  assert.equal(keyOf('\t')?.keysym, keysymNamed('Tab'))
  assert.equal(keyOf('\u0007'), undefined)
  assert.equal(characterOf(0x06c1), 'а') // Cyrillic letters also have a keysym that predates Unicode.
  assert.equal(characterOf(0x0100_65e5), '日')
  assert.equal(characterOf(0xff0d), undefined)
})
