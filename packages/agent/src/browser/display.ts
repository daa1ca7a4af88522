import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { ChildProgram } from './child-program.ts'
import { dropSmallestSizes } from './window/window-hints.ts'

const run = promisify(execFile)

const closeLimitMilliseconds = 1_000
const resizeLimitMilliseconds = 5_000

type Size = Pick<AgentConfig['viewport'], 'width' | 'height'>

/** Chromium requests at least this size for its windows. */
const smallestWindow: Size = { width: 500, height: 100 }

/** The only output of Xtigervnc. */
const output = 'VNC-0'
/** Chromium draws at the display's rate even if nobody watches. */
const pictureRate = 60
/** RandR stores the pixel rate in 32 bits. */
const maxPixelRate = 4_000_000_000

/**
 * Without a window manager Chromium makes its window a pixel smaller than the screen, and popups get no focus. Windows
 * are undecorated and fill the screen; dialogs are unchanged.
 */
const windowRules = `<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
  <focus><focusNew>yes</focusNew></focus>
  <keyboard/>
  <mouse><context name="Client"><mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind></context></mouse>
  <applications>
    <application class="*"><decor>no</decor></application>
    <application type="normal"><maximized>yes</maximized></application>
  </applications>
</openbox_config>
`

/** The screen of a headful session: an X server that is also a VNC server, and a window manager. */
export class Display {
  readonly name: string
  /** How it ended, as one phrase. Never rejects. */
  readonly ended: Promise<string>
  readonly #server: ChildProgram
  readonly #windowManager: ChildProgram
  #size: Size
  /** RandR's name for the current size; undefined for the initial one. */
  #mode: string | undefined
  #modes = 0

  private constructor(name: string, size: Size, server: ChildProgram, windowManager: ChildProgram) {
    this.name = name
    this.#size = size
    this.#server = server
    this.#windowManager = windowManager
    this.ended = Promise.race([server.ended, windowManager.ended.then((how) => `its window manager has ended: ${how}`)])
  }

  /** Resolves when programs can open windows. A small display starts larger: see `makeRoom`. */
  static async start(
    { viewport, run_folder, home_folder }: AgentConfig,
    onLine: (line: string) => void,
  ): Promise<Display> {
    const size = roomFor(viewport)
    await mkdir(run_folder, { recursive: true })
    const rules = join(run_folder, 'windows.xml')
    await writeFile(rules, windowRules)
    const server = new ChildProgram({
      program: 'Xtigervnc',
      args: [
        ...['-geometry', `${size.width}x${size.height}`, '-depth', '24'],
        // VNC only on a unix socket and no X over TCP, so that neither is reachable over a network.
        ...['-rfbport', '-1', `-rfbunixpath=${join(run_folder, 'vnc.sock')}`, '-rfbunixmode=0600', '-nolisten', 'tcp'],
        ...['-SecurityTypes', 'None', '-AlwaysShared', '-AcceptSetDesktopSize=off', '-displayfd', '3'],
        // All clients share one address, so those that disconnect early would get the others blocked.
        '-UseBlacklist=0',
      ],
      environment: { HOME: home_folder, PATH: '/usr/bin:/bin' },
      pipes: 1,
      onLine,
    })
    const number = await Promise.race([displayNumber(server), server.ended])
    if (!/^\d+$/.test(number)) throw new Error(`the display did not start (${number}): ${server.lastLines}`)
    const name = `:${number}`
    const windowManager = new ChildProgram({
      program: 'openbox',
      args: ['--config-file', rules, '--sm-disable'],
      environment: { HOME: home_folder, PATH: '/usr/bin:/bin', DISPLAY: name },
      pipes: 0,
      onLine,
    })
    return new Display(name, size, server, windowManager)
  }

  /** Called before Chromium starts, whose windows shrink to a smaller display only after they exist (`resize`). */
  async makeRoom(viewport: Size): Promise<void> {
    await this.resize(roomFor(viewport))
  }

  get size(): Size {
    return this.#size
  }

  hasSize({ width, height }: Size): boolean {
    return this.#size.width === width && this.#size.height === height
  }

  /** Resolves when the server has the new size; the window manager follows. */
  async resize({ width, height }: Size): Promise<void> {
    if (this.hasSize({ width, height })) return
    if (width < smallestWindow.width || height < smallestWindow.height) await dropSmallestSizes(this.name)
    const [old, mode] = [this.#mode, `berth-${++this.#modes}-${width}x${height}`]
    const megahertz = Math.min(width * height * pictureRate, maxPixelRate) / 1e6
    // Without a cathode ray, lines and frames need no margins.
    const [line, picture] = [Array(4).fill(`${width}`), Array(4).fill(`${height}`)]
    await this.#xrandr('--newmode', mode, megahertz.toFixed(9), ...line, ...picture)
    await this.#xrandr('--addmode', output, mode)
    await this.#xrandr('--output', output, '--mode', mode)
    this.#mode = mode
    this.#size = { width, height }
    if (old === undefined) return
    await this.#xrandr('--delmode', output, old)
    await this.#xrandr('--rmmode', old)
  }

  /** One command per call: xrandr does not see changes made earlier in the same call. */
  async #xrandr(...args: string[]): Promise<void> {
    const environment = { PATH: '/usr/bin:/bin', DISPLAY: this.name }
    await run('xrandr', args, { env: environment, timeout: resizeLimitMilliseconds })
  }

  /** Lets the server remove its lock file and sockets. */
  async close(): Promise<void> {
    this.#server.child.kill('SIGTERM')
    await Promise.race([this.ended, delay(closeLimitMilliseconds)])
    this.kill()
    await this.ended
  }

  kill(): void {
    this.#windowManager.kill()
    this.#server.kill()
  }
}

function roomFor({ width, height }: Size): Size {
  return { width: Math.max(width, smallestWindow.width), height: Math.max(height, smallestWindow.height) }
}

/** The server picks a free display and writes its number as a line when it is ready. */
async function displayNumber({ child }: ChildProgram): Promise<string> {
  const pipe = child.stdio[3] as Readable
  let line = ''
  // Read to the end of the line: a server that cannot write all of it exits with an error.
  for await (const chunk of pipe) {
    line += chunk
    if (line.endsWith('\n')) break
  }
  return line.trim()
}
