import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { MessageLine } from './message-line.ts'

function read(chunks: readonly string[]): { messages: object[]; corruptions: string[] } {
  const stream = new PassThrough()
  const [messages, corruptions]: [object[], string[]] = [[], []]
  new MessageLine(stream, {
    maxBytes: 20,
    onMessage: (message: object) => messages.push(message),
    onCorruption: (reason) => corruptions.push(reason),
  })
  for (const chunk of chunks) stream.emit('data', Buffer.from(chunk))
  return { messages, corruptions }
}

test('messages are complete, however they are split', () => {
  assert.deepEqual(read(['{"a":1}\n{"b"', ':', '2}\n']), { messages: [{ a: 1 }, { b: 2 }], corruptions: [] })
})

test('a malformed message ends the line, and nothing after it is read', () => {
  for (const text of ['not json\n', '5\n', 'null\n', `${'x'.repeat(21)}\n`, 'x'.repeat(21)]) {
    const { messages, corruptions } = read(['{"a":1}\n', text, '\n{"b":2}\n'])
    assert.deepEqual(messages, [{ a: 1 }], text)
    assert.equal(corruptions.length, 1, text)
  }
})
