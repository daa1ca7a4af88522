import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { ChildProgram } from '../browser/child-program.ts'
import { http } from '../http/node-http.ts'

const startLimitMilliseconds = 15_000
const listening = /ChromeDriver was started successfully on port (\d+)/

export interface DriverCommand {
  readonly method: string
  /** Below the driver's root: `/session/…`. */
  readonly path: string
  readonly body?: Buffer
}

/**
 * A chromedriver in this machine. It supports neither tokens nor unix sockets: the root of its paths is a secret, so
 * that a page that reaches its port cannot send commands.
 */
export class Chromedriver {
  /** How it ended, as one phrase. Never rejects. */
  readonly ended: Promise<string>
  readonly #program: ChildProgram
  readonly #port: number
  readonly #root: string

  private constructor(program: ChildProgram, port: number, root: string) {
    this.ended = program.ended
    this.#program = program
    this.#port = port
    this.#root = root
  }

  /** Resolves when it accepts commands. */
  static async start(homeFolder: string): Promise<Chromedriver> {
    const root = randomBytes(16).toString('hex')
    const port = Promise.withResolvers<number>()
    const program = new ChildProgram({
      program: 'chromedriver',
      args: ['--port=0', `--url-base=${root}`, '--log-level=SEVERE'],
      environment: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: homeFolder, LANG: 'C.UTF-8' },
      pipes: 0,
      readsOutput: true,
      onLine: (line) => {
        const [, number] = listening.exec(line) ?? []
        if (number) port.resolve(Number(number))
      },
    })
    const late = setTimeout(() => {
      program.kill()
    }, startLimitMilliseconds)
    const failure = program.ended.then((how) => {
      throw new Error(`chromedriver did not start: ${how}`)
    })
    try {
      return new Chromedriver(program, await Promise.race([port.promise, failure]), root)
    } finally {
      clearTimeout(late)
      failure.catch(() => {}) // `ended` reports a later end.
    }
  }

  /** Sends a command; the caller reads the body of the response. */
  send({ method, path, body }: DriverCommand, signal?: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = http.request({
        host: '127.0.0.1',
        port: this.#port,
        method,
        path: `/${this.#root}${path}`,
        headers: body && { 'content-type': 'application/json; charset=utf-8', 'content-length': body.length },
        agent: false,
        ...(signal && { signal }),
      })
      request.on('response', resolve)
      request.on('error', reject)
      request.end(body)
    })
  }

  /** Sends a command and reads the whole response. */
  async ask(command: DriverCommand): Promise<{ readonly status: number; readonly body: string }> {
    const answer = await this.send(command)
    return { status: answer.statusCode ?? 500, body: await text(answer) }
  }

  kill(): void {
    this.#program.kill()
  }
}
