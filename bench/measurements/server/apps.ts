import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempDisposable, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Berth } from '../../../e2e/testing/berth.ts'
import { zipOf } from '../../../e2e/testing/browsers/extension-files.ts'
import { installedVersion, PackageRegistry } from '../../../e2e/testing/servers/package-registry.ts'
import { readMetric } from '../../services/berth.ts'
import type { BenchContext } from '../measurement.ts'

export const warmInvokeName = 'app, invoke of a warm one beyond its handler'
export const coldInvokeName = 'app, invoke of a cold one'
const noReserveInvokeName = 'app, invoke of a cold one without a reserve'
export const runtimeName = 'app, its runtime alone until it has loaded the code'
export const redeployName = 'app, second deploy with an unchanged lock file'
const burstName = 'app, 100 asynchronous invocations until all have ended'

const service = 'berth'
const burst = 100
const sdk = '@onkernel/sdk'
const code = `
import Kernel from '${sdk}'
const app = new Kernel({ apiKey: 'none' }).app('bench')
app.action('work', async (ctx, payload?: unknown) => {
  const start = performance.now()
  await new Promise((done) => setTimeout(done, 5))
  return performance.now() - start
})
if (process.env.BENCH_RUNTIME) process.exit(0)
`

/** Measures invocations and deployments in a berth of their own. Fails if an invocation fails. */
export async function measureApps({ figures, rounds }: BenchContext): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const registry = stack.use(await PackageRegistry.open())
  const warm = stack.use(await Berth.start({ environment: registry.environment, isOwnGroup: true }))
  const archive = await appArchive()

  await deploy(warm, archive)
  const redeploys: number[] = []
  for (let turn = 0; turn < rounds; turn += 1) redeploys.push(await deploy(warm, archive))
  figures.add(service, redeployName, 'ms', redeploys)

  await invoke(warm)
  const beyond: number[] = []
  for (let turn = 0; turn < rounds * 5; turn += 1) {
    const { milliseconds, output } = await invoke(warm)
    beyond.push(milliseconds - output)
  }
  figures.add(service, warmInvokeName, 'ms', beyond)
  figures.add(service, burstName, 'ms', [await invokeManyAtOnce(warm)])

  const environment = { ...registry.environment, BERTH_APP_WARM_SECONDS: '0' }
  const withoutReserve = await coldInvokes({ environment, archive, rounds, reserve: 0 })
  figures.add(service, noReserveInvokeName, 'ms', withoutReserve.colds)
  const { colds, runtimes } = await coldInvokes({ environment, archive, rounds, reserve: 1 })
  figures.add(service, coldInvokeName, 'ms', colds)
  figures.add(service, runtimeName, 'ms', runtimes)
}

interface ColdInvokes {
  readonly environment: Readonly<Record<string, string>>
  readonly archive: Uint8Array
  readonly rounds: number
  /** How many machines must wait for apps before each invocation. */
  readonly reserve: number
}

/**
 * Milliseconds beyond the handler for invocations of an app without a machine, and for its runtime alone, measured
 * before each.
 */
async function coldInvokes({ environment, archive, rounds, reserve }: ColdInvokes) {
  const BERTH_RESERVE = reserve > 0 ? `app=${reserve}` : 'off'
  await using berth = await Berth.start({ environment: { ...environment, BERTH_RESERVE }, isOwnGroup: true })
  await deploy(berth, archive)
  const [colds, runtimes]: [number[], number[]] = [[], []]
  for (let turn = 0; turn < rounds; turn += 1) {
    while ((await readMetric(berth, 'berth_reserve_machines{kind="app"}')) < reserve) await delay(100)
    runtimes.push(await startRuntime())
    const { milliseconds, output } = await invoke(berth)
    colds.push(milliseconds - output)
  }
  return { colds, runtimes }
}

async function appArchive(): Promise<Uint8Array> {
  const version = await installedVersion(sdk)
  const whole = { name: 'bench', version: '1.0.0', dependencies: { [sdk]: version } }
  const packages = { '': whole, [`node_modules/${sdk}`]: { version } }
  return zipOf({
    'index.ts': code,
    'package.json': JSON.stringify({ ...whole, type: 'module' }),
    'package-lock.json': JSON.stringify({ name: 'bench', version: '1.0.0', lockfileVersion: 3, packages }),
  })
}

/** Milliseconds from the request until the deployment runs. */
async function deploy(berth: Berth, archive: Uint8Array): Promise<number> {
  const body = new FormData()
  body.set('file', new Blob([new Uint8Array(archive)]), 'source.zip')
  body.set('entrypoint_rel_path', 'index.ts')
  const start = performance.now()
  const { id } = await send<{ id: string }>(berth, '/deployments', { method: 'POST', body })
  for (;;) {
    const { status, status_reason } = await send<{ status: string; status_reason?: string }>(
      berth,
      `/deployments/${id}`,
    )
    if (status === 'running') return performance.now() - start
    if (status === 'failed') throw new Error(`the app of the benchmark was not built: ${status_reason}`)
    await delay(10)
  }
}

async function invoke(berth: Berth): Promise<{ readonly milliseconds: number; readonly output: number }> {
  const start = performance.now()
  const { status, output } = await send<{ status: string; output: string }>(berth, '/invocations', invocation())
  if (status !== 'succeeded') throw new Error(`an invocation has ${status}`)
  return { milliseconds: performance.now() - start, output: Number(output) }
}

async function invokeManyAtOnce(berth: Berth): Promise<number> {
  const start = performance.now()
  const created = await Promise.all(
    Array.from({ length: burst }, () => send<{ id: string }>(berth, '/invocations', invocation({ async: true }))),
  )
  for (const { id } of created) {
    for (;;) {
      const { status } = await send<{ status: string }>(berth, `/invocations/${id}`)
      if (status === 'succeeded') break
      if (status === 'failed') throw new Error('of many invocations at once one has failed')
      await delay(10)
    }
  }
  return performance.now() - start
}

function invocation(fields: object = {}): RequestInit {
  const body = JSON.stringify({ app_name: 'bench', action_name: 'work', ...fields })
  return { method: 'POST', body, headers: { 'content-type': 'application/json' } }
}

async function send<Reply>(berth: Berth, path: string, init: RequestInit = {}): Promise<Reply> {
  const response = await berth.request(path, init)
  if (!response.ok) throw new Error(`${path} was answered with ${response.status}: ${await response.text()}`)
  return (await response.json()) as Reply
}

/** Loads the same code in the same way in a process of this host, until it has registered its actions. */
async function startRuntime(): Promise<number> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'berth-bench-app-'))
  await writeFile(join(folder.path, 'package.json'), '{"type":"module"}')
  await writeFile(join(folder.path, 'index.ts'), code)
  await symlink(join(import.meta.dirname, '../../../node_modules'), join(folder.path, 'node_modules'))
  const loader = join(fileURLToPath(import.meta.resolve('tsx/package.json')), '../dist/loader.mjs')
  const start = performance.now()
  const child = spawn(process.execPath, ['--enable-source-maps', '--import', loader, 'index.ts'], {
    cwd: folder.path,
    env: { PATH: process.env.PATH, BENCH_RUNTIME: '1' },
    stdio: 'ignore',
  })
  const [exitCode] = (await once(child, 'exit')) as [number | null]
  if (exitCode !== 0) throw new Error(`the runtime ended with ${exitCode}`)
  return performance.now() - start
}
