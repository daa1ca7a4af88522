import { inMachine } from '../machines/paths.ts'
import { type InstallPlan, type InstallStep, installKey, type Manifests, NotInstallable } from './install-step.ts'

interface PackageManager {
  readonly locks: readonly string[]
  /** The npm package of the package manager, in the version that the lock file requires. */
  readonly package: (lock: string) => string
  /** The program in the folder of packages. Defaults to the name. */
  readonly program?: string
  readonly args: (lock: string) => readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/**
 * Bun's own package selects one of these with an install script, which npm does not run. The first one works on every
 * processor.
 */
const bunProcessor = process.arch === 'x64' ? 'x64-baseline' : 'aarch64'

/** In order of precedence, for an app with several lock files that names no package manager. */
const managers: Readonly<Record<string, PackageManager>> = {
  npm: { locks: ['npm-shrinkwrap.json', 'package-lock.json'], package: () => 'npm', args: () => ['ci'] },
  pnpm: {
    locks: ['pnpm-lock.yaml'],
    package: (lock) => `pnpm@${pnpmVersion(lock)}`,
    args: () => ['install', '--frozen-lockfile'],
    // Without a terminal it does not prompt. The store would be counted twice.
    env: { CI: 'true', npm_config_store_dir: '/tmp/pnpm-store', npm_config_manage_package_manager_versions: 'false' },
  },
  bun: {
    locks: ['bun.lock', 'bun.lockb'],
    package: () => `@oven/bun-linux-${bunProcessor}@1`,
    program: `@oven/bun-linux-${bunProcessor}/bin/bun`,
    args: () => ['install', '--frozen-lockfile'],
    env: { BUN_INSTALL_CACHE_DIR: '/tmp/bun-cache', DO_NOT_TRACK: '1' },
  },
  yarn: {
    locks: ['yarn.lock'],
    package: (lock) => (isClassicYarn(lock) ? 'yarn@1' : '@yarnpkg/cli-dist@4'),
    args: (lock) => [
      'install',
      ...(isClassicYarn(lock) ? ['--frozen-lockfile', '--non-interactive'] : ['--immutable']),
    ],
    env: {
      // Node.js only finds packages in folders. The version is the one installed here.
      YARN_NODE_LINKER: 'node-modules',
      YARN_IGNORE_PATH: '1',
      YARN_CACHE_FOLDER: '/tmp/yarn-cache',
      YARN_ENABLE_GLOBAL_CACHE: 'false',
      YARN_ENABLE_TELEMETRY: '0',
    },
  },
}

const settingNames = ['.npmrc', 'pnpm-workspace.yaml', '.yarnrc', '.yarnrc.yml', 'bunfig.toml']
const ownScripts = ['preinstall', 'install', 'postinstall', 'prepare', 'preprepare', 'postprepare', 'dependencies']
const npm = `${inMachine.appPackages}/npm/bin/npm-cli.js`
const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=warn']

export const nodeManifestNames = [
  'package.json',
  ...Object.values(managers).flatMap(({ locks }) => locks),
  ...settingNames,
]

/** Uses the package manager of the lock file. npm installs all others first, in the machine of the build. */
export function planNodeInstall(manifests: Manifests, npmVersion: string): InstallPlan | undefined {
  const manifest = manifests['package.json']
  if (!manifest) return undefined
  const { scripts, packageManager, workspaces } = parseManifest(manifest)
  const [named = '', version = ''] = packageManager.split('+')[0]?.split('@') ?? []
  const name = chooseManager(manifests, named)
  const lockName = managers[name]?.locks.find((lock) => manifests[lock])
  const lock = lockName === undefined ? undefined : manifests[lockName]?.toString()
  // Scripts of the app may do anything with its source, which is not part of the key. The same applies to a local
  // folder, which all managers except npm copy.
  const copiesFolders = name !== 'npm' && /\b(file|directory|portal):/.test(lock ?? '')
  const isSame =
    lock !== undefined && !workspaces && !copiesFolders && !scripts.some((script) => ownScripts.includes(script))
  const key = (of: string) =>
    isSame ? installKey([of, npmVersion, process.version, process.arch], manifests) : undefined
  if (name === 'npm' || lock === undefined) {
    const command = lock === undefined ? 'install' : 'ci'
    return { steps: [npmStep(`npm ${command}`, [command])], key: key('npm') }
  }
  const { package: packageOf, args, env, program = `.bin/${name}` } = managers[name] as PackageManager
  const tool = name === named && version !== '' ? ofVersion(packageOf(lock), version) : packageOf(lock)
  const own = args(lock)
  return {
    steps: [
      npmStep(tool, ['install', '--no-save', '--prefix', inMachine.tools, tool]),
      {
        title: `${name} ${own[0]}`,
        command: `${inMachine.tools}/node_modules/${program}`,
        args: own,
        ...(env && { env }),
      },
    ],
    key: key(tool),
  }
}

function npmStep(title: string, args: readonly string[]): InstallStep {
  return { title, command: inMachine.node, args: [npm, ...args, ...quiet] }
}

function chooseManager(manifests: Manifests, named: string): string {
  const found = Object.entries(managers).filter(([, { locks }]) => locks.some((lock) => manifests[lock]))
  return (found.find(([name]) => name === named) ?? found[0])?.[0] ?? 'npm'
}

function ofVersion(packageSpec: string, version: string): string {
  if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) {
    throw new NotInstallable('package.json: packageManager must have an exact version, such as pnpm@10.1.0.')
  }
  return packageSpec.replace(/(?!^)@[^@]*$/, `@${version}`)
}

/** Newer versions cannot read older lock files. */
function pnpmVersion(lock: string): string {
  const version = /^lockfileVersion:\s*'?(\d+)/m.exec(lock)?.[1]
  if (version === '9') return '10'
  if (version === '6') return '8'
  throw new NotInstallable(`pnpm-lock.yaml: lockfileVersion must be 9.0 or 6.0, not ${version ?? 'absent'}.`)
}

function isClassicYarn(lock: string): boolean {
  return !/^__metadata:/m.test(lock)
}

function parseManifest(manifest: Buffer) {
  let parsed: unknown
  try {
    parsed = JSON.parse(manifest.toString())
  } catch (cause) {
    throw new NotInstallable('package.json: is not JSON.', { cause })
  }
  const { scripts, packageManager, workspaces } = (parsed ?? {}) as Readonly<Record<string, unknown>>
  return {
    scripts: typeof scripts === 'object' && scripts !== null ? Object.keys(scripts) : [],
    packageManager: typeof packageManager === 'string' ? packageManager : '',
    workspaces: workspaces !== undefined,
  }
}
