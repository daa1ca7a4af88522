import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface SystemPackage {
  /** The name in Debian. */
  readonly name: string
  readonly reason: string
  /** The programs of the package that berth or its tests use. */
  readonly programs: readonly string[]
  /** Whether `berth serve` refuses to start without it. */
  readonly isRequired: boolean
  /** Whether only tests call it. `berth serve` does not install it. */
  readonly isForTests?: true
}

/** Everything that berth and its tests need from the system. Setup installs it and doctor checks it. */
export const systemPackages: readonly SystemPackage[] = [
  { name: 'chromium', reason: 'the browser of every session', programs: ['chromium'], isRequired: true },
  { name: 'bubblewrap', reason: 'the sandbox around every session', programs: ['bwrap'], isRequired: true },
  {
    name: 'iproute2',
    reason: "sets up the interfaces and routes of a session's own network",
    programs: ['ip'],
    isRequired: true,
  },
  { name: 'nftables', reason: 'captures the connections of a session', programs: ['nft'], isRequired: true },
  {
    name: 'perl-base',
    reason: 'opens the sockets for captured connections',
    programs: ['perl'],
    isRequired: true,
  },
  {
    name: 'util-linux',
    reason: 'unshare and setpriv: namespaces, and unprivileged users',
    programs: ['unshare', 'setpriv', 'nsenter', 'flock'],
    isRequired: true,
  },
  {
    name: 'tigervnc-standalone-server',
    reason: 'the display of headful sessions',
    programs: ['Xtigervnc'],
    isRequired: true,
  },
  {
    name: 'openbox',
    reason: 'makes windows fill the display, and gives popups and dialogs the focus',
    programs: ['openbox'],
    isRequired: true,
  },
  { name: 'chromium-driver', reason: 'classic WebDriver', programs: ['chromedriver'], isRequired: true },
  { name: 'ffmpeg', reason: 'records the screen of a session', programs: ['ffmpeg', 'ffprobe'], isRequired: false },
  { name: 'xclip', reason: 'clipboard of headful sessions', programs: ['xclip'], isRequired: true },
  {
    name: 'x11-xserver-utils',
    reason: 'xrandr: the size of a running display',
    programs: ['xrandr'],
    isRequired: true,
  },
  {
    name: 'x11-xkb-utils',
    reason: 'the keyboard of a display',
    programs: ['setxkbmap', 'xkbcomp'],
    isRequired: false,
  },
  {
    name: 'e2fsprogs',
    reason: 'creates the disks of sessions, which limit what they write',
    programs: ['mkfs.ext4'],
    isRequired: false,
  },
  {
    name: 'procps',
    reason: 'ps and pgrep, to inspect the processes of a session',
    programs: ['ps', 'pgrep', 'pkill'],
    isRequired: false,
  },
  { name: 'curl', reason: 'for programs of a session', programs: ['curl'], isRequired: false },
  { name: 'git', reason: 'fetches the repositories of apps', programs: ['git'], isRequired: false },
  { name: 'python3', reason: 'runs Python apps', programs: ['python3'], isRequired: false },
  { name: 'python3-venv', reason: 'installs uv, which installs Python apps', programs: [], isRequired: false },
  {
    name: 'fonts-liberation',
    reason: 'fonts with the metrics of Arial, Times and Courier, for which most pages are designed',
    programs: [],
    isRequired: false,
  },
  { name: 'fonts-noto-core', reason: 'fonts for most scripts', programs: [], isRequired: false },
  { name: 'fonts-noto-cjk', reason: 'Chinese, Japanese and Korean', programs: [], isRequired: false },
  { name: 'fonts-noto-color-emoji', reason: 'emoji', programs: [], isRequired: false },
  {
    name: 'firefox-esr',
    reason: 'a second browser in which tests open the live view',
    programs: ['firefox-esr'],
    isRequired: false,
    isForTests: true,
  },
]

/**
 * The packages that dpkg does not report as installed. Undefined on a system without dpkg or, as in many container
 * images, without its database.
 */
export async function missingSystemPackages(): Promise<readonly SystemPackage[] | undefined> {
  const lines = await readPackageStates([...systemPackages.map(({ name }) => name), 'dpkg'])
  // If dpkg does not list itself, its database is missing.
  if (lines === undefined || !installedNames(lines).has('dpkg')) return undefined
  return notInstalled(lines)
}

async function readPackageStates(names: readonly string[]): Promise<string | undefined> {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: these are dpkg-query's own fields.
  const format = '${db:Status-Abbrev} ${Package}\\n'
  try {
    return (await run('dpkg-query', ['-W', '-f', format, ...names])).stdout
  } catch (error) {
    const { code, stdout } = error as { code?: unknown; stdout?: string }
    // dpkg-query exits with 1 when it does not know a name, after it has printed the others, and with 2 when it cannot
    // read its database.
    if (code === 1) return stdout
    if (code === 2 || code === 'ENOENT') return undefined
    throw error
  }
}

/** Parses lines such as `ii  chromium`: wanted state, state and error flag, then the name. */
export function notInstalled(dpkgLines: string): readonly SystemPackage[] {
  const installed = installedNames(dpkgLines)
  return systemPackages.filter(({ name }) => !installed.has(name))
}

function installedNames(dpkgLines: string): ReadonlySet<string> {
  const lines = dpkgLines.split('\n').filter((line) => line[1] === 'i')
  return new Set(lines.map((line) => line.slice(3).trim()))
}

/** The command with which an administrator installs them. */
export function installCommand(packages: readonly SystemPackage[]): string {
  return `apt-get install -y --no-install-recommends ${packages.map(({ name }) => name).join(' ')}`
}
