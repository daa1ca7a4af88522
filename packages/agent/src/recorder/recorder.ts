import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { RecordRequest } from '@berth/contract/agent/agent-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Browser } from '../browser/browser.ts'
import { locale } from '../browser/child-program.ts'
import { displayEncoderArguments } from './screen-encoder.ts'

/** Until the first frame is encoded. */
const startLimitMilliseconds = 8_000
const maxWordsLength = 300

/** Records the screen with ffmpeg, once for each recording that runs. Nothing of it is stored in the machine. */
export class Recorder {
  readonly #browser: Browser
  readonly #running = new Map<string, ChildProcess>()

  constructor(browser: Browser) {
    this.#browser = browser
  }

  /** Answers with the recording until it ends. */
  async record({ id, ...recording }: RecordRequest, response: ServerResponse): Promise<void> {
    const display = await this.#browser.displayName()
    const source = { displayName: display, ...this.#browser.displaySize }
    const encoder = spawn('ffmpeg', displayEncoderArguments(source, recording), {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: '/usr/bin:/bin', LANG: locale },
    })
    this.#running.set(id, encoder)
    const exited = once(encoder, 'exit').catch((error: Error) => [error.message])
    void exited.then(() => this.#running.delete(id))
    response.once('close', () => encoder.kill('SIGKILL'))
    let words = ''
    encoder.stderr.setEncoding('utf8').on('data', (text: string) => {
      words = `${words}${text}`.slice(-maxWordsLength)
    })
    try {
      await Promise.race([
        once(encoder.stdout, 'readable', { signal: AbortSignal.timeout(startLimitMilliseconds) }),
        exited.then(([how]) => Promise.reject(new Error(`ffmpeg ended at once: ${how}`))),
      ])
      if (encoder.stdout.readableLength === 0) throw new Error('ffmpeg recorded nothing')
    } catch (cause) {
      encoder.kill('SIGKILL')
      const reason = words.trim() || (cause as Error).message
      throw new BerthError('replay_start_failed', { reason }, { cause })
    }
    response.writeHead(200, { 'content-type': 'video/mp4' })
    await pipeline(encoder.stdout, response).catch(() => response.destroy())
  }

  /** Lets the encoder write what it has; its answer ends then. */
  end(id: string): void {
    this.#running.get(id)?.kill('SIGINT')
  }
}
