import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface SystemPackage {
  /** Name in Debian. */
  readonly name: string
  readonly reason: string
  /** Whether `berth serve` refuses to start without it. */
  readonly isRequired: boolean
}

/** Everything that berth needs from the system, once: setup installs it and doctor checks it. */
export const systemPackages: readonly SystemPackage[] = [
  { name: 'chromium', reason: 'the browser of every session', isRequired: true },
  { name: 'bubblewrap', reason: 'the sandbox around every session', isRequired: true },
  { name: 'iproute2', reason: "sets up the loopback and veth pair of a session's own network", isRequired: true },
  { name: 'util-linux', reason: 'unshare and setpriv: namespaces, and users without rights', isRequired: true },
  { name: 'tigervnc-standalone-server', reason: 'the display of headful sessions', isRequired: true },
  {
    name: 'openbox',
    reason: 'makes windows fill the display, and gives popups and dialogs the focus',
    isRequired: true,
  },
  { name: 'chromium-driver', reason: 'WebDriver BiDi', isRequired: true },
  { name: 'ffmpeg', reason: 'records the display of a session', isRequired: false },
  { name: 'xclip', reason: 'clipboard of headful sessions', isRequired: true },
  { name: 'x11-xserver-utils', reason: 'xrandr: the size of a running display', isRequired: true },
  {
    name: 'fonts-liberation',
    reason: 'the metrics of Arial, Times and Courier, which most pages are laid out for',
    isRequired: false,
  },
  { name: 'fonts-noto-core', reason: 'most scripts of the world', isRequired: false },
  { name: 'fonts-noto-cjk', reason: 'Chinese, Japanese and Korean', isRequired: false },
  { name: 'fonts-noto-color-emoji', reason: 'emoji', isRequired: false },
]

/** The packages that dpkg does not know as installed; undefined on a system without dpkg. */
export async function missingSystemPackages(): Promise<readonly SystemPackage[] | undefined> {
  const names = systemPackages.map(({ name }) => name)
  // biome-ignore lint/suspicious/noTemplateCurlyInString: these are dpkg-query's own fields.
  const format = '${db:Status-Abbrev} ${Package}\\n'
  try {
    const { stdout } = await run('dpkg-query', ['-W', '-f', format, ...names])
    return notInstalled(stdout)
  } catch (error) {
    // dpkg-query exits with 1 when it does not know one of the names, after it has printed the others.
    const { code, stdout } = error as { code?: unknown; stdout?: string }
    if (code === 1 && stdout !== undefined) return notInstalled(stdout)
    if (code === 'ENOENT') return undefined
    throw error
  }
}

/** Reads lines as `ii  chromium`: wanted, state and an error flag, then the name. */
export function notInstalled(dpkgLines: string): readonly SystemPackage[] {
  const installed = new Set(
    dpkgLines
      .split('\n')
      .filter((line) => line[1] === 'i')
      .map((line) => line.slice(3).trim()),
  )
  return systemPackages.filter(({ name }) => !installed.has(name))
}

/** What an administrator types to install them. */
export function installCommand(packages: readonly SystemPackage[]): string {
  return `apt-get install -y --no-install-recommends ${packages.map(({ name }) => name).join(' ')}`
}
