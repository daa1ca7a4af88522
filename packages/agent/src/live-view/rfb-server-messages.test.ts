import assert from 'node:assert/strict'
import { test } from 'node:test'
import { constants, deflateSync } from 'node:zlib'
import { clipboardActions, clipboardCaps, provideClipboard, readCutText } from './rfb-server-messages.ts'

test('clipboard text is complete when a client flushes its stream without ending it', () => {
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

test('text provided with the extension is unchanged, and text without it is Latin-1', () => {
  assert.equal(readCutText(provideClipboard('€ 1')).text, '€ 1')
  assert.equal(readCutText(Buffer.from([6, 0, 0, 0, 0, 0, 0, 2, 0xe4, 0x31])).text, 'ä1')
})

test('a message about clipboard capabilities is not taken for an action', () => {
  assert.deepEqual(readCutText(clipboardCaps()), { action: clipboardActions.caps })
})
