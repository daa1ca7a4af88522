import type { Duplex } from 'node:stream'
import { BerthError } from '@berth/contract/errors.ts'

const maxHeadBytes = 16 * 1024
const maxRefusalBytes = 64 * 1024
const maxReasonLength = 500
/** The agent itself waits for a browser that is restarting. */
const answerLimitMilliseconds = 30_000

export interface HandshakeResponse {
  /** The subprotocol that the agent selected. */
  readonly protocol: string | undefined
  /** The bytes after the headers: the start of the WebSocket stream. */
  readonly rest: Buffer
}

interface Head {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly rest: Buffer
}

/**
 * Reads an agent's response to a handshake and pauses the socket after it. A response that opens no WebSocket becomes
 * an error of berth, so that data of a compromised agent is never forwarded unchanged.
 */
export async function readHandshakeResponse(agent: Duplex): Promise<HandshakeResponse> {
  const limit = setTimeout(() => agent.destroy(), answerLimitMilliseconds)
  try {
    const head = await readHead(agent)
    if (head.status !== 101) throw await refusalIn(head, agent)
    return { protocol: head.headers.get('sec-websocket-protocol'), rest: head.rest }
  } catch (error) {
    agent.destroy()
    throw error instanceof BerthError ? error : new BerthError('session_unreachable', undefined, { cause: error })
  } finally {
    clearTimeout(limit)
  }
}

async function readHead(agent: Duplex): Promise<Head> {
  const bytes = await readUntil(agent, (read) => read.includes('\r\n\r\n') || read.length > maxHeadBytes)
  const end = bytes.indexOf('\r\n\r\n')
  if (end === -1) throw new Error('the agent disconnected or sent too many response headers')
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})(?: |$)/.exec(statusLine)?.[1])
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]
  })
  return { status, headers: new Map(headers), rest: bytes.subarray(end + 4) }
}

/** The agent's error responses are JSON. Their message is shown to the owner of the session. */
async function refusalIn({ status, headers, rest }: Head, agent: Duplex): Promise<BerthError> {
  const length = Math.min(Number(headers.get('content-length') ?? 0), maxRefusalBytes)
  const body = await readUntil(agent, (read) => read.length >= length, rest)
  const reason = messageIn(body.toString())
  if (status === 404) return new BerthError('target_not_found', { reason })
  if (status === 400) return new BerthError('bad_request', { reason })
  if (status === 429) return new BerthError('too_many_viewers', { reason })
  return new BerthError('session_unreachable', undefined, {
    cause: new Error(`the agent responded with ${status}: ${reason}`),
  })
}

function messageIn(text: string): string {
  try {
    return String((JSON.parse(text) as { message?: unknown }).message).slice(0, maxReasonLength)
  } catch {
    return 'The browser refuses the websocket.'
  }
}

/** Reads until the text is sufficient or the stream ends, and then pauses the socket. */
function readUntil(
  agent: Duplex,
  isEnough: (read: Buffer) => boolean,
  before: Buffer = Buffer.alloc(0),
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let read: Buffer = before
    const done = () => {
      agent.pause()
      agent.off('data', take).off('close', done).off('end', done).off('error', reject)
      resolve(read)
    }
    const take = (chunk: Buffer) => {
      read = Buffer.concat([read, chunk])
      if (isEnough(read)) done()
    }
    agent.on('data', take).once('close', done).once('end', done).once('error', reject)
    if (agent.destroyed || isEnough(read)) done()
  })
}
