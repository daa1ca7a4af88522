import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { hostName } from '../pages.ts'

const run = promisify(execFile)

interface RepositoryContent {
  readonly files: Readonly<Record<string, string | Uint8Array>>
  readonly links?: Readonly<Record<string, string>>
  /** Paths of submodules. */
  readonly submodules?: readonly string[]
}

/** Git repositories over HTTP, as `/owner/name`. */
export class GitServer implements AsyncDisposable {
  /** Requested paths. */
  readonly requests: string[] = []
  readonly #folder: string
  readonly #server: Server
  /** Tokens of repositories that require one, and redirects, by path. */
  readonly #tokens = new Map<string, string>()
  readonly #redirects = new Map<string, string>()

  private constructor(folder: string) {
    this.#folder = folder
    this.#server = createServer((request, response) => this.#answer(request, response))
  }

  static async open(): Promise<GitServer> {
    const server = new GitServer(await mkdtemp(join(tmpdir(), 'berth-git-')))
    server.#server.listen(0, '127.0.0.1')
    await once(server.#server, 'listening')
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Makes a berth on this host fetch from it. `BERTH_EGRESS_ALLOW` must let machines reach the host's port. */
  get environment(): Readonly<Record<string, string>> {
    return { BERTH_GITHUB_URL: this.url, BERTH_EGRESS_ALLOW: `${hostName}:${this.port}` }
  }

  /** Returns the URL, and the commit on the branch `main`, which has the tag `v1`. */
  async add(name: string, { files, links = {}, submodules = [] }: RepositoryContent, token?: string) {
    const folder = join(this.#folder, `owner/${name}`)
    const git = async (...args: readonly string[]) =>
      (await run('git', ['-c', 'user.name=berth', '-c', 'user.email=berth@example.com', ...args], { cwd: folder }))
        .stdout
    await mkdir(folder, { recursive: true })
    await git('init', '--quiet', '--initial-branch=main')
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), content)
    }
    for (const [path, target] of Object.entries(links)) await symlink(target, join(folder, path))
    await git('add', '--all', '--force')
    for (const path of submodules) await git('update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},${path}`)
    await git('commit', '--quiet', '--message', 'first')
    await git('tag', '--annotate', '--message', 'one', 'v1')
    if (token) this.#tokens.set(`/owner/${name}`, token)
    return { url: `${this.url}/owner/${name}`, commit: (await git('rev-parse', 'HEAD')).trim() }
  }

  /** A repository that redirects elsewhere. */
  redirect(name: string, target: string): string {
    this.#redirects.set(`/owner/${name}`, target)
    return `${this.url}/owner/${name}`
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '', this.url)
    this.requests.push(`${request.method} ${url.pathname}`)
    const [, owner = '', name = ''] = url.pathname.split('/')
    const target = this.#redirects.get(`/${owner}/${name}`)
    if (target) {
      response
        .writeHead(302, { location: `${target}${url.pathname.slice(`/${owner}/${name}`.length)}${url.search}` })
        .end()
      return
    }
    const token = this.#tokens.get(`/${owner}/${name}`)
    const expected = `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`
    if (token !== undefined && request.headers.authorization !== expected) {
      // Deliberately bad: it repeats the credentials that it was sent.
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end(request.headers.authorization)
      return
    }
    this.#serve(request, response, url)
  }

  #serve(request: IncomingMessage, response: ServerResponse, { pathname, search }: URL): void {
    const child = spawn('git', ['http-backend'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: {
        PATH: process.env.PATH,
        GIT_PROJECT_ROOT: this.#folder,
        GIT_HTTP_EXPORT_ALL: '1',
        // The folders may belong to another user than this process.
        ...{ GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' },
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
        REQUEST_METHOD: request.method ?? '',
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      },
    })
    request.pipe(child.stdin)
    child.stdin.on('error', () => {})
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('close', () => {
      const whole = Buffer.concat(chunks)
      const end = whole.indexOf('\r\n\r\n')
      const headers = whole.subarray(0, Math.max(0, end)).toString('latin1').split('\r\n')
      const fields = headers.map((line) => line.split(': ', 2) as [string, string])
      const status = fields.find(([field]) => field === 'Status')?.[1]
      response.writeHead(Number(status?.split(' ')[0] ?? (end === -1 ? 500 : 200)), fields.flat())
      response.end(whole.subarray(end + 4))
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
    await rm(this.#folder, { recursive: true })
  }
}
