import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import {
  agentWebDriverSessionPath,
  agentWebDriverStatusPath,
  webDriverSessionPattern,
} from '@berth/contract/agent/agent-protocol.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { sendJson } from '../http/json-body.ts'
import type { ClassicSessions } from './classic-sessions.ts'
import { sendWebDriverError, WebDriverError } from './webdriver-error.ts'

/** An uploaded file is sent in one command, in Base64. */
const maxBodyBytes = 128 * 1024 * 1024

/** Serves classic WebDriver: creates sessions, and passes their commands to chromedriver. */
export async function answerWebDriver(
  sessions: ClassicSessions,
  logger: Logger,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    await answer(sessions, request, response)
  } catch (thrown) {
    if (response.headersSent || response.destroyed) return void response.destroy()
    request.resume()
    if (!(thrown instanceof WebDriverError)) logger.error({ err: thrown }, 'a WebDriver command has failed')
    const error =
      thrown instanceof WebDriverError ? thrown : new WebDriverError('unknown error', (thrown as Error).message)
    sendWebDriverError(response, error)
  }
}

async function answer(sessions: ClassicSessions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url = '' } = request
  if (url === agentWebDriverStatusPath) {
    checkMethod(method, ['GET'])
    return sendJson(response, 200, { value: { ready: !sessions.isFull, message: '' } })
  }
  if (url === agentWebDriverSessionPath) {
    checkMethod(method, ['POST'])
    return sendJson(response, 200, await sessions.create(parseBody(await readBody(request))))
  }
  const [, id, command = ''] = webDriverSessionPattern.exec(url) ?? []
  if (id === undefined) throw new WebDriverError('unknown command', `there is no ${method} ${url}`)
  checkMethod(method, ['GET', 'POST', 'DELETE'])

  const leave = sessions.enter(id)
  response.once('close', leave)
  if (method === 'DELETE' && command === '') {
    request.resume()
    await sessions.end(id)
    return sendJson(response, 200, { value: null })
  }
  await passOn(sessions, id, command, request, response)
}

async function passOn(
  sessions: ClassicSessions,
  id: string,
  command: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = request.method === 'POST' ? await readBody(request) : undefined
  const abort = new AbortController()
  response.once('close', () => abort.abort())
  const sent = { method: request.method ?? '', path: `/session/${id}${command}`, ...(body && { body }) }
  const answer = await sessions.send(id, sent, abort.signal).catch((error: Error) => {
    if (abort.signal.aborted || sessions.has(id)) throw error
    throw new WebDriverError('invalid session id', 'the WebDriver session has ended: chromedriver has ended')
  })
  const head = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-cache' }
  response.writeHead(answer.statusCode ?? 500, head)
  await pipeline(answer, response)
  // Closing the last window makes chromedriver end the session.
  if (request.method === 'DELETE' && command === '/window') await forgetWhenEnded(sessions, id)
}

async function forgetWhenEnded(sessions: ClassicSessions, id: string): Promise<void> {
  if (!sessions.has(id)) return
  const command = { method: 'GET', path: `/session/${id}/timeouts` }
  const answer = await sessions.send(id, command, AbortSignal.timeout(5_000)).catch(() => undefined)
  answer?.resume()
  if (answer?.statusCode === 404) await sessions.end(id)
}

function checkMethod(method: string, allowed: readonly string[]): void {
  if (!allowed.includes(method)) {
    throw new WebDriverError('unknown method', `this path takes ${allowed.join(', ')} only, not ${method}`)
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length
    if (bytes > maxBodyBytes)
      throw new WebDriverError('invalid argument', `the body has more than ${maxBodyBytes} bytes`)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}

function parseBody(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    throw new WebDriverError('invalid argument', 'the body must be a JSON object')
  }
}
