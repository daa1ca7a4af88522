import type { Socket } from 'node:net'
import type { AddressFamily, LookupAnswer } from '@berth/contract/egress/machine-protocol.ts'
import { decode, encode, type Packet, type Question, streamDecode, streamEncode } from 'dns-packet'
import type { EgressUplink } from './egress-uplink.ts'
import type { NameTable } from './name-table.ts'

/** Maximum size of a datagram if its sender names no limit (RFC 1035). */
const defaultDatagramBytes = 512
/** Short, because an address of our pool can be assigned to another name. */
const poolTtlSeconds = 60
const maxConcurrent = 512
const idleLimitMilliseconds = 30_000
const longestQuestionBytes = 4_096

const code = { noError: 0, serverFailure: 2, nameError: 3, notImplemented: 4, refused: 5 } as const
/** RFC 1035 and 6891: truncated, recursion desired, recursion available. */
const flag = { truncated: 0x0200, recursionWanted: 0x0100, recursionAvailable: 0x0080 } as const

/** SVCB and HTTPS, which dns-packet does not name. Browsers query them beside addresses, and manage without. */
const emptyTypes: readonly string[] = ['UNKNOWN_64', 'UNKNOWN_65']
const families: Readonly<Record<string, AddressFamily>> = { A: 4, AAAA: 6 }

interface NameServerOptions {
  readonly egress: Pick<EgressUplink, 'lookup'>
  readonly names: NameTable
  readonly onLookup: (name: string) => void
}

interface Outcome {
  readonly code: number
  readonly addresses: readonly string[]
  readonly ttl: number
}

const empty = { addresses: [], ttl: 0 } as const

/** Answers DNS queries of programs with data from egress. */
export class NameServer {
  readonly #options: NameServerOptions
  #running = 0

  constructor(options: NameServerOptions) {
    this.#options = options
  }

  /** Undefined if the datagram is not a query. */
  async answerDatagram(bytes: Buffer): Promise<Uint8Array | undefined> {
    const question = read(() => decode(bytes))
    if (!question) return undefined
    const answer = await this.#answer(question)
    const whole = encode(answer)
    if (whole.length <= datagramLimit(question)) return whole
    return encode({ ...answer, answers: [], flags: (answer.flags ?? 0) | flag.truncated })
  }

  /** DNS over TCP, where a length precedes each message. */
  serve(program: Socket): void {
    let rest = Buffer.alloc(0)
    program.setTimeout(idleLimitMilliseconds, () => program.destroy())
    program.once('end', () => program.end())
    program.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= 2) {
        const length = rest.readUInt16BE(0)
        if (length > longestQuestionBytes) return void program.destroy()
        if (rest.length < 2 + length) break
        const question = read(() => streamDecode(rest.subarray(0, 2 + length)))
        rest = rest.subarray(2 + length)
        if (!question) return void program.destroy()
        void this.#answer(question).then((answer) => program.writable && program.write(streamEncode(answer)))
      }
    })
    program.resume()
  }

  async #answer(packet: Packet): Promise<Packet> {
    const [question, ...others] = packet.questions ?? []
    const outcome =
      question && others.length === 0 ? await this.#resolve(question) : { code: code.notImplemented, ...empty }
    const isExtended = packet.additionals?.some(({ type }) => type === 'OPT')
    return {
      type: 'response',
      id: packet.id ?? 0,
      flags: ((packet.flags ?? 0) & flag.recursionWanted) | flag.recursionAvailable | outcome.code,
      questions: packet.questions ?? [],
      answers: outcome.addresses.map((data) => ({
        type: question?.type as 'A' | 'AAAA',
        name: question?.name ?? '',
        ttl: outcome.ttl,
        data,
      })),
      ...(isExtended && {
        additionals: [
          {
            type: 'OPT',
            name: '.',
            udpPayloadSize: 1_232,
            flags: 0,
            options: [],
            extendedRcode: 0,
            ednsVersion: 0,
            flag_do: false,
          },
        ],
      }),
    }
  }

  async #resolve({ name, type }: Question): Promise<Outcome> {
    if (emptyTypes.includes(type)) return { code: code.noError, ...empty }
    const family = families[type]
    if (family === undefined) return { code: code.notImplemented, ...empty }
    if (this.#running >= maxConcurrent) return { code: code.serverFailure, ...empty }
    this.#running += 1
    this.#options.onLookup(name)
    try {
      return this.#outcomeOf(await this.#options.egress.lookup(name, family), name, family)
    } catch {
      return { code: code.serverFailure, ...empty }
    } finally {
      this.#running -= 1
    }
  }

  #outcomeOf(answer: LookupAnswer, name: string, family: AddressFamily): Outcome {
    if ('addresses' in answer) return { code: code.noError, addresses: answer.addresses, ttl: answer.ttl }
    if ('failed' in answer) {
      const codes = { 'name-not-found': code.nameError, timeout: code.serverFailure, refused: code.refused }
      return { code: codes[answer.failed] ?? code.serverFailure, ...empty }
    }
    if (family === 6) return { code: code.noError, ...empty }
    const address = this.#options.names.addressOf(name.toLowerCase().replace(/\.$/, ''))
    if (address === undefined) return { code: code.serverFailure, ...empty }
    return { code: code.noError, addresses: [address], ttl: poolTtlSeconds }
  }
}

function read(parse: () => Packet): Packet | undefined {
  try {
    const packet = parse()
    return packet.type === 'query' ? packet : undefined
  } catch {
    return undefined
  }
}

function datagramLimit({ additionals = [] }: Packet): number {
  const extension = additionals.find(({ type }) => type === 'OPT') as { udpPayloadSize?: number } | undefined
  return Math.max(extension?.udpPayloadSize ?? 0, defaultDatagramBytes)
}
