import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cutAt, encodeFrame, opcodes } from '../testing/frames.ts'
import { ClientFrames } from './client-frames.ts'

const mask = Buffer.from([0x37, 0xfa, 0x21, 0x3d])

/** All calls of a reader, in order. */
function readAll(chunks: readonly Buffer[], isKept: (message: string) => boolean = () => false) {
  const told = {
    forwarded: Buffer.alloc(0),
    shown: [] as string[],
    pings: [] as string[],
    closes: [] as string[],
    faults: [] as string[],
  }
  const frames = new ClientFrames({
    forward: (bytes) => {
      told.forwarded = Buffer.concat([told.forwarded, bytes])
    },
    beginMessage: () => 0,
    inspect: () => {},
    intercept: (message) => {
      told.shown.push(message)
      return isKept(message)
    },
    delayLong: () => undefined,
    ping: (payload) => told.pings.push(String(payload)),
    close: (payload) => told.closes.push(payload.toString('hex')),
    malformed: (reason) => told.faults.push(reason),
  })
  for (const chunk of chunks) frames.read(chunk)
  return told
}

function text(payload: string, isFinal = true, opcode: number = opcodes.text): Buffer {
  return encodeFrame({ opcode, payload: Buffer.from(payload), isFinal, mask })
}

test('forwards data frames unchanged, however they are split into chunks', () => {
  const frame = fc.record({
    payload: fc.uint8Array({ maxLength: 3000 }),
    mask: fc.uint8Array({ minLength: 4, maxLength: 4 }),
    opcode: fc.constantFrom(opcodes.text, opcodes.binary),
  })
  fc.assert(
    fc.property(
      fc.array(frame, { minLength: 1, maxLength: 5 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      (parts, cuts) => {
        const bytes = Buffer.concat(
          parts.map(({ payload, mask, opcode }) =>
            encodeFrame({ opcode, payload: Buffer.from(payload), mask: Buffer.from(mask) }),
          ),
        )

        const told = readAll(cutAt(bytes, cuts))

        assert.deepEqual(told.forwarded, bytes)
        assert.deepEqual(told.faults, [])
      },
    ),
  )
})

test('returns a short message complete, wherever its bytes are split', () => {
  const message = '{"id":7,"method":"Browser.close"}'
  const bytes = text(message)

  for (let cut = 0; cut <= bytes.length; cut++) {
    const told = readAll(cutAt(bytes, [cut]), () => true)

    assert.deepEqual(told.shown, [message])
    assert.equal(told.forwarded.length, 0)
  }
})

test('returns a fragmented message complete, whatever is between the fragments', () => {
  const message = '{"id":7,"method":"Browser.close"}'
  fc.assert(
    fc.property(
      fc.array(fc.nat(), { minLength: 1, maxLength: 5 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      (edges, cuts) => {
        const pieces = cutAt(Buffer.from(message), edges)
        const ping = encodeFrame({ opcode: opcodes.ping, payload: Buffer.from('are you there'), mask })
        const bytes = Buffer.concat(
          pieces.flatMap((piece, index) => [
            text(String(piece), index === pieces.length - 1, index === 0 ? opcodes.text : opcodes.continuation),
            ...(index < pieces.length - 1 ? [ping] : []),
          ]),
        )

        const told = readAll(cutAt(bytes, cuts), () => true)

        assert.deepEqual(told.shown, [message])
        assert.equal(told.pings.length, pieces.length - 1)
        assert.equal(told.forwarded.length, 0)
      },
    ),
  )
})

test('an intercepted message leaves the messages before and after it complete', () => {
  const before = text('{"id":1,"method":"Page.enable"}')
  const after = text(`{"id":3,"padding":"${'x'.repeat(70_000)}"}`)

  const told = readAll([Buffer.concat([before, text('{"id":2,"method":"Browser.close"}'), after])], (message) =>
    message.includes('Browser.close'),
  )

  assert.deepEqual(told.forwarded, Buffer.concat([before, after]))
})

test('a long message is forwarded before it has arrived completely', () => {
  const bytes = text('x'.repeat(100_000))

  const told = readAll([bytes.subarray(0, 50_000)])

  assert.deepEqual(told.forwarded, bytes.subarray(0, 50_000))
})

test('accepts every encoding of a length', () => {
  for (const lengthBytes of [0, 2, 8] as const) {
    const bytes = encodeFrame({ opcode: opcodes.text, payload: Buffer.from('{"id":1}'), mask, lengthBytes })

    const told = readAll([bytes])

    assert.deepEqual(told.shown, ['{"id":1}'])
    assert.deepEqual(told.forwarded, bytes)
  }
})

test('does not forward control frames', () => {
  const ping = encodeFrame({ opcode: opcodes.ping, payload: Buffer.from('one'), mask })
  const pong = encodeFrame({ opcode: opcodes.pong, payload: Buffer.from('two'), mask })
  const close = encodeFrame({ opcode: opcodes.close, payload: Buffer.from([0x03, 0xe8]), mask })

  const told = readAll([Buffer.concat([ping, pong, close, text('after the end')])])

  assert.deepEqual(told.pings, ['one'])
  assert.deepEqual(told.closes, ['03e8'])
  assert.equal(told.forwarded.length, 0)
  assert.deepEqual(told.shown, [])
})

test('reports a malformed frame, and reads nothing after it', () => {
  const payload = Buffer.from('x')
  const wrong: Record<string, Buffer> = {
    'not masked': encodeFrame({ opcode: opcodes.text, payload }),
    'a reserved bit': withFirstByte(text('x'), 0xc1),
    'an unknown opcode': encodeFrame({ opcode: 3, payload, mask }),
    'an unknown control opcode': encodeFrame({ opcode: 11, payload, mask }),
    'a fragmented control frame': encodeFrame({ opcode: opcodes.ping, payload, mask, isFinal: false }),
    'a long control frame': encodeFrame({ opcode: opcodes.ping, payload: Buffer.alloc(126), mask }),
    'a continuation of nothing': text('x', true, opcodes.continuation),
    'a message within a message': Buffer.concat([text('x', false), text('y')]),
    'a length beyond all reason': Buffer.from([0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4]),
  }
  for (const [name, bytes] of Object.entries(wrong)) {
    const told = readAll([Buffer.concat([bytes, text('{"id":1}')])])

    assert.equal(told.faults.length, 1, name)
    assert.deepEqual(told.shown, [], name)
    assert.equal(told.forwarded.length, 0, name)
  }
})

test('never throws on arbitrary bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 500 }), fc.array(fc.nat(), { maxLength: 5 }), (bytes, cuts) => {
      assert.ok(readAll(cutAt(Buffer.from(bytes), cuts)).faults.length <= 1)
    }),
  )
})

function withFirstByte(frame: Buffer, first: number): Buffer {
  return Buffer.concat([Buffer.from([first]), frame.subarray(1)])
}

test('a waiting message delays all that follow, and none is lost', async () => {
  const bytes = Buffer.concat(['first', 'wait', 'second', 'wait', 'third'].map((payload) => text(payload)))
  for (let cut = 0; cut <= bytes.length; cut++) {
    const waiting: (() => void)[] = []
    let forwarded = Buffer.alloc(0)
    const frames = new ClientFrames({
      forward: (part) => {
        forwarded = Buffer.concat([forwarded, part])
      },
      beginMessage: () => 0,
      inspect: () => {},
      intercept: (message) =>
        message === 'wait' ? new Promise((resolve) => waiting.push(() => resolve(false))) : false,
      delayLong: () => undefined,
      ping: () => {},
      close: () => {},
      malformed: assert.fail,
    })

    for (const chunk of cutAt(bytes, [cut])) frames.read(chunk)
    assert.deepEqual(forwarded, text('first'))
    waiting[0]?.()
    await new Promise(setImmediate)
    assert.deepEqual(forwarded, Buffer.concat(['first', 'wait', 'second'].map((payload) => text(payload))))
    waiting[1]?.()
    await new Promise(setImmediate)

    assert.deepEqual(forwarded, bytes)
  }
})

test('a long message that is delayed is forwarded unchanged, before all that follow', async () => {
  const [long, next] = [text('x'.repeat(3000)), text('next')]
  const bytes = Buffer.concat([long, next])
  for (let cut = 0; cut <= bytes.length; cut += 7) {
    const delayed = Promise.withResolvers<void>()
    let forwarded = Buffer.alloc(0)
    const frames = new ClientFrames({
      forward: (part) => {
        forwarded = Buffer.concat([forwarded, part])
      },
      beginMessage: () => 0,
      inspect: () => {},
      intercept: () => false,
      delayLong: () => delayed.promise,
      ping: () => {},
      close: () => {},
      malformed: assert.fail,
    })

    for (const chunk of cutAt(bytes, [cut])) frames.read(chunk)
    assert.equal(forwarded.length, 0)
    delayed.resolve()
    await new Promise(setImmediate)

    assert.deepEqual(forwarded, bytes)
  }
})

test('a message can be kept from being sent after it has waited', async () => {
  const kept = Promise.withResolvers<boolean>()
  let forwarded = Buffer.alloc(0)
  const frames = new ClientFrames({
    forward: (part) => {
      forwarded = Buffer.concat([forwarded, part])
    },
    beginMessage: () => 0,
    inspect: () => {},
    intercept: (message) => message === 'keep' && kept.promise,
    delayLong: () => undefined,
    ping: () => {},
    close: () => {},
    malformed: assert.fail,
  })

  frames.read(Buffer.concat([text('keep'), text('next')]))
  kept.resolve(true)
  await new Promise(setImmediate)

  assert.deepEqual(forwarded, text('next'))
})
