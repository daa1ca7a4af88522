import { createHash } from 'node:crypto'
import { inMachine } from '../machines/paths.ts'

/** The files of an app that say what to install, as far as they are there. */
export const manifestNames = [
  'package.json',
  'package-lock.json',
  'npm-shrinkwrap.json',
  'pnpm-lock.yaml',
  'bun.lock',
  'bun.lockb',
  'yarn.lock',
] as const
export type Manifests = Partial<Readonly<Record<(typeof manifestNames)[number], Buffer>>>

export interface InstallPlan {
  readonly command: string
  readonly args: readonly string[]
  /** What is installed is the same for the same key. Absent: it may be different each time. */
  readonly key: string | undefined
}

const ownScripts = ['preinstall', 'install', 'postinstall', 'prepare', 'preprepare', 'postprepare', 'dependencies']
const foreignLocks = ['pnpm-lock.yaml', 'bun.lock', 'bun.lockb', 'yarn.lock'] as const

/** An app that cannot be installed. The message is for its owner. */
export class NotInstallable extends Error {}

/** How the dependencies of an app are installed; nothing for an app that names none. */
export function planInstall(manifests: Manifests, npmVersion: string): InstallPlan | undefined {
  const manifest = manifests['package.json']
  if (!manifest) return undefined
  const lock = manifests['npm-shrinkwrap.json'] ?? manifests['package-lock.json']
  const foreign = foreignLocks.find((name) => manifests[name] !== undefined)
  if (!lock && foreign) {
    throw new NotInstallable(
      `${foreign}: is not supported. Add a package-lock.json, or remove it to use npm without one.`,
    )
  }
  const scripts = scriptsOf(manifest)
  const npm = `${inMachine.appPackages}/npm/bin/npm-cli.js`
  return {
    command: inMachine.node,
    args: [npm, lock ? 'ci' : 'install', '--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=warn'],
    // Scripts of the app itself may do anything with its source, which is no part of the key.
    key: lock && scripts.length === 0 ? keyOf([npmVersion, process.version, process.arch, manifest, lock]) : undefined,
  }
}

function scriptsOf(manifest: Buffer): readonly string[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(manifest.toString())
  } catch (cause) {
    throw new NotInstallable('package.json: is not JSON.', { cause })
  }
  const { scripts } = (parsed ?? {}) as { readonly scripts?: unknown }
  const names = typeof scripts === 'object' && scripts !== null ? Object.keys(scripts) : []
  return names.filter((name) => ownScripts.includes(name))
}

function keyOf(parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${part.length}\n`).update(part)
  return hash.digest('hex')
}
