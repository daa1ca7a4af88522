import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import type { Client } from './client-list.ts'

const run = promisify(execFile)
const installLimitMilliseconds = 10 * 60 * 1000

/** The client cannot run here, which is not a failure. */
export class Skipped extends Error {}

/** Downloads and builds are stored here, outside the checkout. */
export const cacheFolder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'berth', 'clients')

/** Installs the client if necessary, and returns the command that runs its program. */
export async function installClient(client: Client): Promise<readonly string[]> {
  const folder = join(cacheFolder, `${client.name.replaceAll(/[^a-z0-9]+/gi, '-')}-${client.version}-${keyOf(client)}`)
  const program = join(folder, basename(client.program))
  const install = { node: installForNode, python: installForPython, go: installForGo }[client.runtime]
  await mkdir(folder, { recursive: true })
  await cp(join(import.meta.dirname, client.program), program)
  return install(client, folder, program)
}

function keyOf({ packages }: Client): string {
  return createHash('sha256').update(JSON.stringify(packages)).digest('hex').slice(0, 8)
}

/** The program is copied beside its packages, because Node.js resolves packages from there. */
async function installForNode({ packages }: Client, folder: string, program: string): Promise<readonly string[]> {
  await once(folder, async () => {
    await writeFile(
      join(folder, 'package.json'),
      JSON.stringify({ private: true, type: 'module', dependencies: packages }),
    )
    // Install scripts would download browsers.
    await tool('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], folder)
  })
  return [process.execPath, program]
}

async function installForPython({ packages }: Client, folder: string, program: string): Promise<readonly string[]> {
  const python = join(folder, 'venv/bin/python')
  await tool('python3', ['-c', 'import venv, ensurepip'], folder).catch(() => {
    throw new Skipped('needs python3 and python3-venv')
  })
  await once(folder, async () => {
    await tool('python3', ['-m', 'venv', '--clear', join(folder, 'venv')], folder)
    const pinned = Object.entries(packages).map(([name, version]) => `${name}==${version}`)
    await tool(python, ['-m', 'pip', 'install', '--quiet', ...pinned], folder)
  })
  return [python, program]
}

async function installForGo({ packages }: Client, folder: string, program: string): Promise<readonly string[]> {
  await tool('go', ['version'], folder).catch(() => {
    throw new Skipped('needs go')
  })
  const binary = join(folder, 'client')
  const source = createHash('sha256')
    .update(await readFile(program))
    .digest('hex')
  await once(
    folder,
    async () => {
      await rm(join(folder, 'go.mod'), { force: true })
      await tool('go', ['mod', 'init', 'client'], folder)
      for (const [module, version] of Object.entries(packages))
        await tool('go', ['get', `${module}@${version}`], folder)
      await tool('go', ['mod', 'tidy'], folder)
      await tool('go', ['build', '-o', binary, '.'], folder)
    },
    source,
  )
  return [binary]
}

/** Does the work once. Interrupted work starts again. */
async function once(folder: string, work: () => Promise<void>, content = ''): Promise<void> {
  const mark = join(folder, '.installed')
  if ((await readFile(mark, 'utf8').catch(() => undefined)) === content) return
  await work()
  await writeFile(mark, content)
}

async function tool(program: string, args: readonly string[], folder: string): Promise<void> {
  const environment = {
    ...process.env,
    GOPATH: join(cacheFolder, 'go'),
    GOCACHE: join(cacheFolder, 'go-build'),
    GOFLAGS: '-mod=mod',
    GOTOOLCHAIN: 'local',
    PIP_DISABLE_PIP_VERSION_CHECK: '1',
  }
  await run(program, [...args], { cwd: folder, env: environment, timeout: installLimitMilliseconds })
}
