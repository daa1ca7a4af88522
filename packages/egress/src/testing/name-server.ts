import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { parseAddress } from '@berth/contract/egress/host.ts'
import type { NameSource } from '../names/host-files.ts'

/** How a name server answers for a name: addresses of both families, a refusal, or no response. */
export type NameRecord =
  | readonly string[]
  | 'unknown'
  | 'fails'
  | 'silent'
  /** Too long for UDP, so that the client repeats the query over TCP. */
  | { readonly truncated: readonly string[] }
  /** The first response takes this long. Later ones are immediate, as from a cache. */
  | { readonly slowly: readonly string[]; readonly milliseconds: number }

export interface NameServer extends AsyncDisposable {
  /** `127.0.0.1:port` */
  readonly authority: string
  /** `name A` or `name AAAA` for each query, in order. Queries over TCP start with `tcp `. */
  readonly queries: readonly string[]
  readonly records: Record<string, NameRecord>
}

const types: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA' }
const codes: Readonly<Record<string, number>> = { fails: 2, unknown: 3 }

/** A name server on loopback. Names without a record do not exist. */
export async function startNameServer(records: Record<string, NameRecord>): Promise<NameServer> {
  const queries: string[] = []
  const timers = new Set<NodeJS.Timeout>()
  const firstAsked = new Map<string, number>()
  const serve = (query: Buffer, isTcp: boolean, reply: (answer: Buffer) => void) => {
    const { name, type, end } = readQuestion(query)
    queries.push(`${isTcp ? 'tcp ' : ''}${name} ${types[type] ?? type}`)
    const record = records[name] ?? 'unknown'
    if (record === 'silent') return
    const question = query.subarray(12, end)
    const send = (addresses: readonly string[], flags = 0x8180) =>
      reply(answerOf(query.readUInt16BE(), question, type, addresses, flags))
    if (typeof record === 'string') send([], 0x8180 | (codes[record] ?? 0))
    else if ('truncated' in record) isTcp ? send(record.truncated) : send([], 0x8380)
    else if ('slowly' in record) {
      const knownAt = firstAsked.get(name) ?? performance.now() + record.milliseconds
      firstAsked.set(name, knownAt)
      timers.add(setTimeout(() => send(record.slowly), Math.max(knownAt - performance.now(), 0)))
    } else send(record)
  }

  const tcp = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (data: Buffer) => {
      // On loopback queries arrive complete, and possibly several at once.
      for (let rest = data; rest.length > 2; rest = rest.subarray(2 + rest.readUInt16BE())) {
        serve(rest.subarray(2, 2 + rest.readUInt16BE()), true, (answer) => {
          const length = Buffer.alloc(2)
          length.writeUInt16BE(answer.length)
          socket.write(Buffer.concat([length, answer]))
        })
      }
    })
  })
  tcp.listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const { port } = tcp.address() as { port: number }
  const udp: UdpSocket = createSocket('udp4')
  udp.on('message', (query, { port, address }) => serve(query, false, (answer) => udp.send(answer, port, address)))
  udp.bind(port, '127.0.0.1')
  await once(udp, 'listening')

  return {
    authority: `127.0.0.1:${port}`,
    queries,
    records,
    async [Symbol.asyncDispose]() {
      for (const timer of timers) clearTimeout(timer)
      udp.close()
      tcp.close()
    },
  }
}

/** The files of a host that uses this server. */
export function hostUsing(
  servers: readonly string[],
  { hosts = {}, search = [], ndots = 1 }: { hosts?: Record<string, string[]>; search?: string[]; ndots?: number } = {},
): NameSource {
  return {
    hosts: () => new Map(Object.entries(hosts)),
    nameServers: () => ({ servers, search, ndots }),
  }
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let offset = 12
  for (let length = query[offset] ?? 0; length > 0; length = query[offset] ?? 0) {
    labels.push(query.toString('latin1', offset + 1, offset + 1 + length))
    offset += length + 1
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(offset + 1), end: offset + 5 }
}

function answerOf(id: number, question: Buffer, type: number, addresses: readonly string[], flags: number): Buffer {
  const fitting = addresses.filter((address) => address.includes(':') === (type === 28))
  const head = Buffer.alloc(12)
  for (const [index, value] of [id, flags, 1, fitting.length].entries()) head.writeUInt16BE(value, index * 2)
  const records = fitting.map((address) => {
    const bytes = bytesOf(address)
    const record = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length])
    return Buffer.concat([record, bytes])
  })
  return Buffer.concat([head, question, ...records])
}

function bytesOf(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number))
  const [before = '', after] = (parseAddress(address) ?? address).split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const [first, last] = [groups(before), groups(after ?? '')]
  const all = after === undefined ? first : [...first, ...Array(8 - first.length - last.length).fill('0'), ...last]
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex')
}
