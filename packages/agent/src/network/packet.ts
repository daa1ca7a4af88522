import { linkAddresses } from '@berth/contract/agent/machine/machine-network.ts'

/** A TCP or UDP packet sent by a program of the machine. */
export interface Packet {
  readonly protocol: typeof tcp | typeof udp
  readonly source: Endpoint
  readonly destination: Endpoint
  /** The payload of UDP; for TCP everything after the ports. */
  readonly payload: Buffer
  /** Starts with the IP header. */
  readonly bytes: Buffer
  readonly ip: IpVersion
}

export interface Endpoint {
  readonly address: string
  readonly port: number
}

export const tcp = 6
export const udp = 17

interface IpVersion {
  readonly etherType: number
  readonly headerBytes: number
  readonly addressBytes: number
  /** Offset of the source address in the header; the destination follows. */
  readonly addressOffset: number
  readonly icmpProtocol: number
}

const ipv4: IpVersion = { etherType: 0x0800, headerBytes: 20, addressBytes: 4, addressOffset: 12, icmpProtocol: 1 }
const ipv6: IpVersion = { etherType: 0x86dd, headerBytes: 40, addressBytes: 16, addressOffset: 8, icmpProtocol: 58 }

const linkHeaderBytes = 14
const udpHeaderBytes = 8
const hopLimit = 64
/** How much of a packet an ICMP error contains: more than the ports, by which the kernel finds the socket. */
const repeatedBytes = 512

/** Undefined for anything except a complete, unfragmented packet of TCP or UDP: nothing in a machine sends others. */
export function parseFrame(frame: Buffer): Packet | undefined {
  const etherType = frame.length < linkHeaderBytes ? 0 : frame.readUInt16BE(12)
  const ip = [ipv4, ipv6].find((version) => version.etherType === etherType)
  const packet = frame.subarray(linkHeaderBytes)
  if (!ip || packet.length < ip.headerBytes) return undefined
  const [protocol, start, end] =
    ip === ipv4
      ? [isFragment(packet) ? 0 : packet[9], (packet.readUInt8(0) & 0xf) * 4, packet.readUInt16BE(2)]
      : [packet[6], ip.headerBytes, ip.headerBytes + packet.readUInt16BE(4)]
  if ((protocol !== tcp && protocol !== udp) || end > packet.length || start < ip.headerBytes) return undefined
  const body = packet.subarray(start, end)
  if (body.length < (protocol === tcp ? 20 : udpHeaderBytes)) return undefined
  const { addressOffset: offset, addressBytes: size } = ip
  const endpoint = (index: number): Endpoint => ({
    address: addressText(packet.subarray(offset + index * size, offset + (index + 1) * size)),
    port: body.readUInt16BE(index * 2),
  })
  return {
    protocol,
    source: endpoint(0),
    destination: endpoint(1),
    payload: body.subarray(protocol === tcp ? 4 : udpHeaderBytes),
    bytes: packet.subarray(0, end),
    ip,
  }
}

function isFragment(packet: Buffer): boolean {
  return (packet.readUInt16BE(6) & 0x3fff) !== 0
}

function addressText(bytes: Buffer): string {
  return bytes.length === 4 ? bytes.join('.') : plainAddress(bytes.toString('hex').replace(/.{4}(?!$)/g, '$&:'))
}

/** An address in canonical form: IPv6 addresses can be written in many ways. */
export function plainAddress(address: string): string {
  return address.includes(':') ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address
}

/** The same packet as if it arrived at the machine's interface. Its sender has left the checksum to the hardware. */
export function repeatedFrame({ bytes, ip }: Packet): Buffer {
  const packet = Buffer.from(bytes)
  const start = ip === ipv4 ? (packet.readUInt8(0) & 0xf) * 4 : ip.headerBytes
  const body = packet.subarray(start)
  body.writeUInt16BE(0, 16)
  body.writeUInt16BE(transportSum(ip, packet, tcp, body), 16)
  return Buffer.concat([linkHeader(ip), packet])
}

/** The reply of a host on whose port nothing listens. */
export function resetFrame(syn: Packet): Buffer {
  const body = Buffer.alloc(20)
  body.writeUInt16BE(syn.destination.port, 0)
  body.writeUInt16BE(syn.source.port, 2)
  body.writeUInt32BE((syn.payload.readUInt32BE(0) + 1) >>> 0, 8)
  body.writeUInt8(0x50, 12) // A header of 5 words, without options.
  body.writeUInt8(0x14, 13) // RST and ACK.
  return answerFrame(syn, tcp, body, 16)
}

/** An ICMP error: destination unreachable. */
export function unreachableFrame(packet: Packet): Buffer {
  const repeated = packet.bytes.subarray(0, repeatedBytes)
  const body = Buffer.alloc(8 + repeated.length)
  if (packet.ip === ipv4) body.set([3, 1])
  else body.set([1, 3])
  repeated.copy(body, 8)
  return answerFrame(packet, packet.ip.icmpProtocol, body, 2)
}

export function datagramFrame(question: Packet, payload: Uint8Array): Buffer {
  const body = Buffer.alloc(udpHeaderBytes + payload.length)
  body.writeUInt16BE(question.destination.port, 0)
  body.writeUInt16BE(question.source.port, 2)
  body.writeUInt16BE(body.length, 4)
  body.set(payload, udpHeaderBytes)
  return answerFrame(question, udp, body, 6)
}

/** A packet from the original destination to the original source. */
function answerFrame({ bytes, ip }: Packet, protocol: number, body: Buffer, sumOffset: number): Buffer {
  const header = Buffer.alloc(ip.headerBytes)
  const { addressOffset: offset, addressBytes: size } = ip
  bytes.copy(header, offset, offset + size, offset + 2 * size)
  bytes.copy(header, offset + size, offset, offset + size)
  if (ip === ipv4) {
    header.writeUInt8(0x45, 0)
    header.writeUInt16BE(header.length + body.length, 2)
    header.writeUInt8(hopLimit, 8)
    header.writeUInt8(protocol, 9)
    header.writeUInt16BE(finish(add(0, header)), 10)
  } else {
    header.writeUInt8(0x60, 0)
    header.writeUInt16BE(body.length, 4)
    header.writeUInt8(protocol, 6)
    header.writeUInt8(hopLimit, 7)
  }
  // Only ICMP over IPv4 excludes the addresses from its checksum.
  const sum = protocol === ipv4.icmpProtocol ? finish(add(0, body)) : transportSum(ip, header, protocol, body)
  body.writeUInt16BE(sum === 0 ? 0xffff : sum, sumOffset)
  return Buffer.concat([linkHeader(ip), header, body])
}

function linkHeader({ etherType }: IpVersion): Buffer {
  const [to, from] = [linkAddresses.program, linkAddresses.gateway].map((text) => text.replaceAll(':', ''))
  return Buffer.from(`${to}${from}${etherType.toString(16).padStart(4, '0')}`, 'hex')
}

function transportSum({ addressOffset, addressBytes }: IpVersion, header: Buffer, protocol: number, body: Buffer) {
  const addresses = header.subarray(addressOffset, addressOffset + 2 * addressBytes)
  return finish(add(add(protocol + body.length, addresses), body))
}

/** The Internet checksum (RFC 1071). */
function add(sum: number, bytes: Buffer): number {
  let total = sum
  for (let index = 0; index + 1 < bytes.length; index += 2) total += bytes.readUInt16BE(index)
  return bytes.length % 2 === 0 ? total : total + bytes.readUInt8(bytes.length - 1) * 256
}

function finish(sum: number): number {
  let folded = sum
  while (folded > 0xffff) folded = (folded & 0xffff) + Math.floor(folded / 0x1_0000)
  return ~folded & 0xffff
}
