import assert from 'node:assert/strict'
import { test } from 'node:test'
import { constants, deflateSync } from 'node:zlib'
import { clipboardActions, clipboardCaps, provideClipboard, readCutText } from './rfb-server-messages.ts'

test('text of the clipboard comes whole from a client that flushes its stream without an end', () => {
  const text = Buffer.from('ä\r\n日本\0')
  const size = Buffer.alloc(4)
  size.writeUInt32BE(text.length)
  const content = deflateSync(Buffer.concat([size, text]), { finishFlush: constants.Z_FULL_FLUSH })
  const head = Buffer.alloc(12)
  head[0] = 6
  head.writeInt32BE(-(4 + content.length), 4)
  head.writeUInt32BE(clipboardActions.provide | 1, 8)

  assert.deepEqual(readCutText(Buffer.concat([head, content])), { action: clipboardActions.provide, text: 'ä\n日本' })
})

test('what the session provides is read as it was, and text without the extension as Latin-1', () => {
  assert.equal(readCutText(provideClipboard('€ 1')).text, '€ 1')
  assert.equal(readCutText(Buffer.from([6, 0, 0, 0, 0, 0, 0, 2, 0xe4, 0x31])).text, 'ä1')
})

test('what a client is able to do with clipboards is not taken for doing it', () => {
  assert.deepEqual(readCutText(clipboardCaps()), { action: clipboardActions.caps })
})
