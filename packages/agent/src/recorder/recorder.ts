import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { RecordRequest } from '@berth/contract/agent/agent-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Browser } from '../browser/browser.ts'
import { locale } from '../browser/child-program.ts'
import { PagePictures } from './page-pictures.ts'
import { displayEncoderArguments, pictureEncoderArguments } from './screen-encoder.ts'

/** Until the first frame is encoded. */
const startLimitMilliseconds = 8_000
const maxWordsLength = 300

interface RunningRecording {
  readonly encoder: ChildProcess
  /** Lets the encoder write its remaining data. */
  readonly end: () => void
}

type Recording = Omit<RecordRequest, 'id'>

/** Records the screen with ffmpeg, one process per recording. Nothing is stored in the machine. */
export class Recorder {
  readonly #browser: Browser
  readonly #running = new Map<string, RunningRecording>()

  constructor(browser: Browser) {
    this.#browser = browser
  }

  /** Streams the recording until it ends. */
  async record({ id, ...recording }: RecordRequest, response: ServerResponse): Promise<void> {
    const running = this.#browser.config.headless ? this.#recordPages(recording) : await this.#recordDisplay(recording)
    const { encoder } = running
    const { stdout, stderr } = encoder
    if (!stdout || !stderr) throw new Error('the encoder has no output')
    this.#running.set(id, running)
    const exited = once(encoder, 'exit').catch((error: Error) => [error.message])
    void exited.then(() => {
      this.#running.delete(id)
      running.end()
    })
    response.once('close', () => encoder.kill('SIGKILL'))
    let words = ''
    stderr.setEncoding('utf8').on('data', (text: string) => {
      words = `${words}${text}`.slice(-maxWordsLength)
    })
    try {
      await Promise.race([
        once(stdout, 'readable', { signal: AbortSignal.timeout(startLimitMilliseconds) }),
        exited.then(([how]) => Promise.reject(new Error(`ffmpeg ended immediately: ${how}`))),
      ])
      if (stdout.readableLength === 0) throw new Error('ffmpeg recorded nothing')
    } catch (cause) {
      encoder.kill('SIGKILL')
      const reason = words.trim() || (cause as Error).message
      throw new BerthError('replay_start_failed', { reason }, { cause })
    }
    response.writeHead(200, { 'content-type': 'video/mp4' })
    await pipeline(stdout, response).catch(() => response.destroy())
  }

  async #recordDisplay(recording: Recording): Promise<RunningRecording> {
    const displayName = await this.#browser.displayName()
    const encoder = startEncoder(displayEncoderArguments({ displayName, ...this.#browser.displaySize }, recording))
    return { encoder, end: () => encoder.kill('SIGINT') }
  }

  /** A headless browser has no display: its pages are captured for the recording. */
  #recordPages({ framerate, max_seconds }: Recording): RunningRecording {
    const { width, height } = this.#browser.config.viewport
    const encoder = startEncoder(pictureEncoderArguments({ width, height }, framerate))
    const { stdin, stdout } = encoder
    if (!stdin || !stdout) throw new Error('the encoder has no input or output')
    const pictures = new PagePictures(stdin, { browser: this.#browser, framerate, width, height })
    let limit: NodeJS.Timeout | undefined
    if (max_seconds !== undefined) {
      // Starts with the first encoded picture: encoder and screencast take time to start.
      stdout.once('readable', () => {
        limit = setTimeout(() => pictures.end(), max_seconds * 1000)
      })
    }
    const end = () => {
      clearTimeout(limit)
      pictures.end()
    }
    return { encoder, end }
  }

  /** Its response ends after the last frame. */
  end(id: string): void {
    this.#running.get(id)?.end()
  }
}

function startEncoder(encoderArguments: readonly string[]): ChildProcess {
  const env = { PATH: '/usr/bin:/bin', LANG: locale }
  return spawn('ffmpeg', encoderArguments, { stdio: ['pipe', 'pipe', 'pipe'], env })
}
