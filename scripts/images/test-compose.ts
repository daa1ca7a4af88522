import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { retry } from '@berth/runtime/async/retry.ts'
import Kernel from '@onkernel/sdk'

const run = promisify(execFile)
const checkout = join(import.meta.dirname, '../..')
const image = process.env.BERTH_TEST_DOCKER_IMAGE
const pageServer = 'pages'
const page = '<title>from the network</title><h1>reached</h1>'
const startLimitMilliseconds = 180_000

/** Why compose.yaml is not started here, or nothing. */
export const noCompose = image === undefined ? 'needs Docker: ./berth test --docker' : undefined

/** compose.yaml as a project of its own, at a free port, with a web server beside it that only egress reaches. */
export class TestCompose implements AsyncDisposable {
  readonly pageUrl = `http://${pageServer}:8081/`
  readonly apiKey = `sk_${randomBytes(16).toString('hex')}`
  readonly #project = `berth-test-${randomBytes(3).toString('hex')}`
  #baseUrl = ''

  /** Resolves when Docker says that berth is healthy. */
  async start(): Promise<void> {
    await this.#compose('up', '--detach', '--no-build', '--wait', '--wait-timeout', '180')
    await this.#readPort()
    const network = ['--network', `${this.#project}_default`, '--network-alias', pageServer]
    const server = `require('node:http').createServer((_, reply) => reply.setHeader('content-type', 'text/html').end(${JSON.stringify(page)})).listen(8081)`
    const container = ['--detach', '--name', this.#pages, ...network, '--entrypoint', '/opt/berth/bin/node']
    await this.#docker('run', ...container, image ?? '', '-e', server)
  }

  get baseUrl(): string {
    return this.#baseUrl
  }

  client(): Kernel {
    return new Kernel({ apiKey: this.apiKey, baseURL: this.#baseUrl, maxRetries: 0 })
  }

  /** Runs a command in the container of berth. */
  async execute(...command: readonly string[]): Promise<string> {
    return this.#compose('exec', '--no-TTY', 'berth', ...command)
  }

  /** Ends every process of the container at once, as a crash of the host does. */
  async killAndStart(): Promise<void> {
    await this.#compose('kill', 'berth')
    await this.#compose('up', '--detach', '--no-build', '--wait', '--wait-timeout', '180')
    await this.#readPort()
  }

  /** The folders of machines, those of the reserve too. */
  async machines(): Promise<readonly string[]> {
    return (await this.execute('ls', '/var/lib/berth/machines')).trim().split('\n')
  }

  /** All that runs in the container, with the user id as the container sees it. */
  async processes(): Promise<readonly { readonly user: string; readonly command: string }[]> {
    const lines = (await this.execute('ps', '-e', '-o', 'uid=,args=')).trim().split('\n')
    return lines.map((line) => {
      const [, user = '', command = ''] = /^\s*(\d+) (.*)$/.exec(line) ?? []
      return { user, command }
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#docker('rm', '--force', '--volumes', this.#pages).catch(() => {})
    await this.#compose('down', '--volumes', '--timeout', '30')
  }

  get #pages(): string {
    return `${this.#project}-${pageServer}`
  }

  async #readPort(): Promise<void> {
    this.#baseUrl = `http://${(await this.#compose('port', 'berth', '8080')).trim()}`
    const ready = () => this.client().browsers.list()
    await retry(ready, {
      firstPauseMilliseconds: 100,
      longestPauseMilliseconds: 1000,
      patienceMilliseconds: startLimitMilliseconds,
    })
  }

  async #compose(...args: readonly string[]): Promise<string> {
    return this.#docker('compose', '--project-name', this.#project, ...args)
  }

  async #docker(...args: readonly string[]): Promise<string> {
    const settings = {
      BERTH_IMAGE: image,
      BERTH_PORT: '0',
      BERTH_API_KEY: this.apiKey,
      BERTH_EGRESS_ALLOW: `${pageServer}:8081`,
    }
    const env = { ...process.env, ...settings }
    return (await run('docker', args, { cwd: checkout, env, timeout: 2 * startLimitMilliseconds })).stdout
  }
}
