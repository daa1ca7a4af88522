import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, mkdtempDisposable, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from '../../clients/install-client.ts'
import { hostName } from '../pages.ts'

const run = promisify(execFile)
const tools = join(import.meta.dirname, '../../../.tools')
const limitMilliseconds = 5 * 60_000

/** A Python package index with everything that pip downloads for the requirements, once per machine. */
export class PythonIndex implements AsyncDisposable {
  /** How many packages were downloaded. */
  fetched = 0
  readonly #server: Server
  readonly #tools: string

  private constructor(folder: string, files: readonly string[], tools: string) {
    this.#tools = tools
    this.#server = createServer((request, response) => {
      const [, kind, name = ''] = (request.url ?? '').split('/')
      const file = files.find((file) => kind === 'files' && file === decodeURIComponent(name))
      if (file) {
        this.fetched += 1
        createReadStream(join(folder, file)).pipe(response)
        return
      }
      const links = files
        .filter((file) => kind === 'simple' && nameOf(file) === name)
        .map((file) => `<a href="/files/${encodeURIComponent(file)}">${file}</a>`)
      response.writeHead(links.length > 0 ? 200 : 404, { 'content-type': 'text/html' }).end(links.join('\n'))
    })
  }

  static async open(requirements: readonly string[]): Promise<PythonIndex> {
    const tools = await findTools()
    const folder = await download(requirements, tools)
    const index = new PythonIndex(folder, await readdir(folder), tools)
    index.#server.listen(0, '127.0.0.1')
    await once(index.#server, 'listening')
    return index
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Makes pip of a berth on this host use it, and lets machines reach it. */
  get environment(): Readonly<Record<string, string>> {
    return {
      PIP_INDEX_URL: `http://127.0.0.1:${this.port}/simple`,
      BERTH_EGRESS_ALLOW: `${hostName}:${this.port}`,
    }
  }

  /** The lock file of a project, with addresses that machines use. */
  async lock(project: string): Promise<string> {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'berth-uv-'))
    await writeFile(join(folder.path, 'pyproject.toml'), project)
    const index = `http://127.0.0.1:${this.port}`
    await run(join(this.#tools, 'uv'), ['lock', '--quiet', '--no-cache'], {
      cwd: folder.path,
      env: {
        PATH: process.env.PATH,
        HOME: folder.path,
        UV_DEFAULT_INDEX: `${index}/simple`,
        UV_PYTHON: '/usr/bin/python3',
        UV_PYTHON_DOWNLOADS: 'never',
      },
      timeout: limitMilliseconds,
    })
    const lock = await readFile(join(folder.path, 'uv.lock'), 'utf8')
    return lock.replaceAll(index, `http://${hostName}:${this.port}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

function nameOf(wheel: string): string {
  return (
    basename(wheel)
      .split('-', 1)[0]
      ?.toLowerCase()
      .replaceAll(/[-_.]+/g, '-') ?? ''
  )
}

/** The tools that setup has installed: uv and the pip beside it. */
async function findTools(): Promise<string> {
  const environment = (await readdir(tools)).find((name) => /^uv-[\d.]+$/.test(name))
  if (environment === undefined) throw new Error('uv is missing: ./berth setup installs it')
  return join(tools, environment, 'bin')
}

async function download(requirements: readonly string[], programs: string): Promise<string> {
  const key = createHash('sha256')
    .update(JSON.stringify([requirements, programs]))
    .digest('hex')
    .slice(0, 12)
  const folder = join(cacheFolder, `wheels-${key}`)
  if (existsSync(folder)) return folder
  // Renamed when complete, so that an interrupted download is never used.
  const unfinished = `${folder}.${process.pid}`
  await mkdir(unfinished, { recursive: true })
  const args = ['-m', 'pip', 'download', '--quiet', '--only-binary=:all:', '--dest', unfinished, ...requirements]
  await run(join(programs, 'python3'), args, { timeout: limitMilliseconds })
  await rename(unfinished, folder).catch(() => rm(unfinished, { recursive: true }))
  return folder
}
