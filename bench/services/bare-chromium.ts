import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { CdpClient } from '../../e2e/testing/cdp.ts'
import { findProcesses } from '../processes.ts'
import { serveBareLiveView } from './bare-live-view.ts'
import { type BenchSession, browserPart, type Service, type Shape } from './service.ts'

const chromium = '/usr/lib/chromium/chromium'
const screen = { width: 1920, height: 1080 }
/** Chromium does not use its sandbox as root. Otherwise the benchmark runs as an ordinary user already. */
const user = process.geteuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined

/**
 * Flags that any service would set to make Chromium quiet and fast. The flags that save time and memory are included,
 * so that the ratios show what a service adds and not which flags it found.
 */
const flags: readonly string[] = [
  '--remote-debugging-port=0',
  // The host's loopback has this name in sessions.
  '--host-resolver-rules=MAP host.berth.internal 127.0.0.1',
  ...['--no-first-run', '--no-default-browser-check', '--password-store=basic', '--disable-sync'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-domain-reliability'],
  ...['--component-updater=url-source=https://127.0.0.1:9', '--gaia-url=https://127.0.0.1:9'],
  ...['--disable-gpu', '--disable-software-rasterizer'],
  '--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,Translate,MediaRouter,OptimizationHints,HttpsUpgrades',
]

/** Also starts browsers with the state of an earlier one. */
export interface BareChromium extends Service {
  /** Runs a browser that changes its state and closes normally. Resolves with the folder of its state. */
  makeState(change: (cdpUrl: string) => Promise<void>): Promise<string>
  /** Copies the state. Resolves with a function that starts a headless browser with it. */
  prepare(state: string): Promise<() => Promise<BenchSession>>
}

/** Bare Chromium, started per session, with a display for headful sessions. */
export async function startBareChromium(): Promise<BareChromium> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-chromium-'))
  await chmod(folder, 0o711)
  const children = new Set<ChildProcess>()
  let lastProfile = 0
  const newSession = () => {
    lastProfile += 1
    return new BareSession(join(folder, String(lastProfile)), children)
  }
  return {
    name: 'bare Chromium',
    create: (shape) => newSession().start(shape),
    makeState: async (change) => {
      const session = newSession()
      const { cdpUrl } = await session.start('headless')
      await change(cdpUrl)
      await session.close(cdpUrl)
      return session.state
    },
    prepare: async (state) => {
      const session = newSession()
      await session.copy(state)
      return () => session.start('headless')
    },
    processes: async () => {
      const processes = await findProcesses(folder)
      return processes.map(({ pid, command }) => ({ pid, part: /Xtigervnc /.test(command) ? 'display' : browserPart }))
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...children].map(killGroup))
      await rm(folder, { recursive: true, force: true })
    },
  }
}

class BareSession {
  readonly #folder: string
  readonly #children: Set<ChildProcess>
  readonly #own: ChildProcess[] = []
  #liveView: Awaited<ReturnType<typeof serveBareLiveView>> | undefined

  constructor(folder: string, children: Set<ChildProcess>) {
    this.#folder = folder
    this.#children = children
  }

  get state(): string {
    return join(this.#folder, 'profile')
  }

  async copy(state: string): Promise<void> {
    await this.#makeFolder()
    // Copied as its user, so that Chromium owns the files.
    const copied = spawn('cp', ['-a', state, this.state], { ...user, stdio: 'ignore' })
    const [code] = await once(copied, 'exit')
    if (code !== 0) throw new Error(`cp -a ${state} ends with ${code}`)
  }

  /** Closes it normally, so that its state is complete. */
  async close(cdpUrl: string): Promise<void> {
    const ended = this.#own.map((child) => once(child, 'exit'))
    const client = await CdpClient.open(cdpUrl)
    await client.send('Browser.close').catch(() => {}) // It may exit before its response.
    await Promise.all(ended)
  }

  async #makeFolder(): Promise<void> {
    await mkdir(this.#folder, { recursive: true })
    if (user) await chown(this.#folder, user.uid, user.gid)
  }

  async start(shape: Shape): Promise<BenchSession> {
    await this.#makeFolder()
    const display = shape === 'headful' ? await this.#startDisplay() : undefined
    const look = display === undefined ? ['--headless', `--screen-info={${screen.width}x${screen.height}}`] : []
    const child = this.#spawn(
      chromium,
      [
        ...[...flags, ...look, `--user-data-dir=${this.state}`],
        ...[`--window-size=${screen.width},${screen.height}`, 'about:blank'],
      ],
      display === undefined ? {} : { DISPLAY: display },
    )
    const cdpUrl = await findLine(child.stderr as Readable, /^DevTools listening on (ws:\S+)/)
    child.stderr?.resume()
    return { cdpUrl, ...(display && { liveView: () => this.#serveLiveView() }), end: () => this.#end() }
  }

  async #serveLiveView(): Promise<string> {
    this.#liveView ??= await serveBareLiveView(join(this.#folder, 'vnc.sock'))
    return this.#liveView.url
  }

  async #startDisplay(): Promise<string> {
    // An X server that does not run as root uses this folder but does not create it.
    await mkdir('/tmp/.X11-unix', { mode: 0o1777 }).then(() => chmod('/tmp/.X11-unix', 0o1777), ignore)
    const size = ['-geometry', `${screen.width}x${screen.height}`, '-depth', '24']
    const sockets = ['-rfbport', '-1', `-rfbunixpath=${join(this.#folder, 'vnc.sock')}`, '-nolisten', 'tcp']
    const server = this.#spawn('Xtigervnc', [...size, ...sockets, '-SecurityTypes', 'None', '-displayfd', '3'])
    return `:${await findLine(server.stdio[3] as Readable, /^(\d+)$/)}`
  }

  #spawn(program: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}): ChildProcess {
    const child = spawn(program, args, {
      ...user,
      cwd: this.#folder,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      env: { HOME: this.#folder, PATH: '/usr/bin:/bin', LANG: 'en_US.UTF-8', ...environment },
    })
    // The caller that awaits the first line notices the error.
    child.on('error', ignore)
    this.#children.add(child)
    this.#own.unshift(child)
    return child
  }

  async #end(): Promise<void> {
    await this.#liveView?.[Symbol.asyncDispose]()
    for (const child of this.#own) {
      await killGroup(child)
      this.#children.delete(child)
    }
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function killGroup(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  process.kill(-child.pid, 'SIGKILL')
  await ended
}

async function findLine(output: Readable, pattern: RegExp): Promise<string> {
  const lines: string[] = []
  const reader = createInterface({ input: output })
  return new Promise((resolve, reject) => {
    reader.on('line', (line) => {
      lines.push(line)
      const [, found] = pattern.exec(line) ?? []
      if (found === undefined) return
      resolve(found) // Resolves before 'close', which would reject immediately.
      reader.close()
    })
    reader.on('close', () => reject(new Error(`no line matches ${pattern} in:\n${lines.join('\n')}`)))
  })
}

function ignore(): void {}
