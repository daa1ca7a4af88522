import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from '../../clients/install-client.ts'
import { hostName } from '../pages.ts'

const run = promisify(execFile)

const nodeModules = join(import.meta.dirname, '../../../node_modules')

/** An npm registry with the packages that are installed here. */
export class PackageRegistry implements AsyncDisposable {
  /** How many tarballs were downloaded. */
  fetched = 0
  readonly #server: Server
  readonly #tarballs = new Map<string, Promise<Buffer>>()
  readonly #manifests = new Map<string, { readonly version: string }>()

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#answer(request.url ?? '', request.headers.host ?? '').then(
        ({ type, body }) => response.writeHead(200, { 'content-type': type }).end(body),
        (error: Error) => response.writeHead(404).end(error.message),
      )
    })
  }

  static async open(): Promise<PackageRegistry> {
    const registry = new PackageRegistry()
    registry.#server.listen(0, '127.0.0.1')
    await once(registry.#server, 'listening')
    return registry
  }

  /** Downloads a package that is not installed here, as `name@version`, once per machine, and serves it. */
  async add(spec: string): Promise<void> {
    const name = spec.slice(0, spec.lastIndexOf('@'))
    const folder = join(cacheFolder, 'npm-packages', spec.replaceAll('/', '-'))
    await mkdir(folder, { recursive: true })
    const find = async () => (await readdir(folder)).find((file) => file.endsWith('.tgz'))
    const pack = [join(nodeModules, 'npm/bin/npm-cli.js'), 'pack', '--silent', '--pack-destination', folder, spec]
    if ((await find()) === undefined) await run(process.execPath, pack)
    const tarball = join(folder, (await find()) ?? '')
    const { stdout } = await run('tar', ['-xzOf', tarball, 'package/package.json'])
    this.#manifests.set(name, JSON.parse(stdout))
    this.#tarballs.set(name, readFile(tarball))
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Makes npm of a berth on this host use it, and lets machines reach it. */
  get environment(): Readonly<Record<string, string>> {
    return {
      npm_config_registry: `http://127.0.0.1:${this.#port}/`,
      BERTH_EGRESS_ALLOW: `${hostName}:${this.#port}`,
    }
  }

  async #answer(url: string, host: string): Promise<{ type: string; body: Buffer | string }> {
    const path = decodeURIComponent(url.slice(1).split('?')[0] ?? '')
    const name = path.replace(/\.tgz$/, '')
    const folder = join(nodeModules, name)
    if (dirname(folder).startsWith(nodeModules) === false) throw new Error('no package')
    if (path.endsWith('.tgz')) {
      this.fetched += 1
      const tarball = this.#tarballs.get(name) ?? pack(folder)
      this.#tarballs.set(name, tarball)
      return { type: 'application/octet-stream', body: await tarball }
    }
    const manifest = this.#manifests.get(name) ?? JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    const { version } = manifest
    const dist = { tarball: `http://${host}/${name}.tgz` }
    const body = { name, 'dist-tags': { latest: version }, versions: { [version]: { ...manifest, dist } } }
    return { type: 'application/json', body: JSON.stringify(body) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

async function pack(folder: string): Promise<Buffer> {
  const args = ['-C', folder, '--transform', 's,^\\.,package,', '-czf', '-', '.']
  const { stdout } = await run('tar', args, { encoding: 'buffer', maxBuffer: 256 * 1024 ** 2 })
  return stdout
}

/** The installed version of a package. */
export async function installedVersion(name: string): Promise<string> {
  return JSON.parse(await readFile(join(nodeModules, name, 'package.json'), 'utf8')).version
}
