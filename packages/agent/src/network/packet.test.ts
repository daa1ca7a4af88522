import assert from 'node:assert/strict'
import { test } from 'node:test'
import { machineAddresses } from '@berth/contract/agent/machine/machine-network.ts'
import fc from 'fast-check'
import { datagramFrame, parseFrame, plainAddress, repeatedFrame, resetFrame, unreachableFrame } from './packet.ts'

/** As a machine's kernel sends them, which leaves the TCP checksum to the hardware. */
const syn4 = Buffer.from(
  '020000000003020000000002' +
    '0800' +
    '4500003c1c4640004006' +
    'abcd' +
    'c0000002c6120304' + //
    'a0b0005001020304' +
    '00000000a002fffffe300000' +
    '0204ffd70402080a0000000a0000000001030307',
  'hex',
)
const syn6 = Buffer.from(
  '020000000003020000000002' +
    '86dd' +
    '6000000000280640' +
    'fd000062657274000068000000000002' +
    '20010db8000000000000000000000001' +
    'a0b001bb01020304' +
    '00000000a002fffffe300000' +
    '0204ffc30402080a0000000a0000000001030307',
  'hex',
)
const question = Buffer.from(
  '020000000003020000000002' +
    '0800' +
    '4500002100000000' +
    '4011' +
    '0000' +
    'c000000208080808' +
    'd431' +
    '0035' +
    '000d0000' +
    '68656c6c6f',
  'hex',
)

test('reads the source and the destination of a packet, in both versions of IP', () => {
  const [first, second, third] = [syn4, syn6, question].map(parseFrame)

  assert.deepEqual(first?.source, { address: machineAddresses.ipv4, port: 0xa0b0 })
  assert.deepEqual(first?.destination, { address: '198.18.3.4', port: 80 })
  assert.deepEqual(second?.destination, { address: '2001:db8::1', port: 443 })
  assert.deepEqual(third?.destination, { address: '8.8.8.8', port: 53 })
  assert.equal(third?.payload.toString(), 'hello')
})

test('replies go to the source of the packet, with valid checksums', () => {
  for (const frame of [syn4, syn6]) {
    const packet = parseFrame(frame)
    assert.ok(packet)

    for (const answer of [resetFrame(packet), unreachableFrame(packet), repeatedFrame(packet)]) {
      assert.equal(sumOf(answer), 0)
    }
    const reset = parseFrame(resetFrame(packet))
    assert.deepEqual([reset?.source, reset?.destination], [packet.destination, packet.source])
    assert.equal(reset?.payload.readUInt32BE(4), 0x0102_0305, 'it acknowledges the SYN')
    const repeated = parseFrame(repeatedFrame(packet))
    assert.deepEqual([repeated?.source, repeated?.destination], [packet.source, packet.destination])
  }
  const asked = parseFrame(question)
  assert.ok(asked)
  for (const payload of ['', 'odd', 'even']) {
    const answer = datagramFrame(asked, Buffer.from(payload))
    assert.equal(sumOf(answer), 0)
    assert.equal(parseFrame(answer)?.payload.toString(), payload)
  }
})

test('other packets are ignored', () => {
  const changed = (frame: Buffer, offset: number, value: number) => {
    const copy = Buffer.from(frame)
    copy.writeUInt8(value, offset)
    return copy
  }
  const others = {
    'an empty frame': Buffer.alloc(0),
    ARP: changed(syn4, 13, 6),
    'a fragment': changed(syn4, 20, 0x20),
    ICMP: changed(syn4, 23, 1),
    'a header of no length': changed(syn4, 14, 0x40),
    'a length beyond the frame': changed(syn4, 16, 0xff),
    'an extension of IPv6': changed(syn6, 20, 0),
    'half a header of TCP': syn4.subarray(0, 14 + 20 + 10),
  }

  for (const [name, frame] of Object.entries(others)) assert.equal(parseFrame(frame), undefined, name)
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void parseFrame(Buffer.from(bytes))))
  fc.assert(
    fc.property(fc.constantFrom(syn4, syn6, question), fc.nat(60), fc.nat(255), (frame, offset, value) => {
      const packet = parseFrame(changed(frame, offset % frame.length, value))
      if (packet) datagramFrame(packet, Buffer.from('answer'))
    }),
  )
})

test('every spelling of an address has one canonical form', () => {
  assert.equal(plainAddress('2001:0DB8:0:0::1'), '2001:db8::1')
  assert.equal(plainAddress('192.0.2.1'), '192.0.2.1')
})

/** The checksum over a whole packet including its addresses; 0 if its own checksum is right. */
function sumOf(frame: Buffer): number {
  const packet = frame.subarray(14)
  const isIpv4 = packet.readUInt8(0) >> 4 === 4
  const start = isIpv4 ? 20 : 40
  const protocol = isIpv4 ? packet.readUInt8(9) : packet.readUInt8(6)
  const body = packet.subarray(start)
  const words = (bytes: Buffer) =>
    (bytes.length % 2 ? Buffer.concat([bytes, Buffer.alloc(1)]) : bytes).toString('hex').match(/.{4}/g) ?? []
  const pseudoHeader =
    protocol === 1 ? [] : [...words(packet.subarray(isIpv4 ? 12 : 8, start)), (protocol + body.length).toString(16)]
  let sum = [...pseudoHeader, ...words(body)].reduce((total, word) => total + Number.parseInt(word, 16), 0)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  return ~sum & 0xffff
}
