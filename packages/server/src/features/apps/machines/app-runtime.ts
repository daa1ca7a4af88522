import { inMachine } from './paths.ts'

export type Runtime = 'node' | 'python'

export const entrypointPattern = /\.([cm]?[jt]s|py)$/

export function runtimeOf(entrypoint: string): Runtime {
  return entrypoint.endsWith('.py') ? 'python' : 'node'
}

/** Variables that Node.js and its libraries read when they start. */
const readAtStart = /^(NODE_(?!ENV$)|TSX_|LD_|SSL_|OPENSSL_)/

/** Whether the process can start before the files of the app exist. For Python, its interpreter may be one of them. */
export function startsWithoutFiles(entrypoint: string, environment: Readonly<Record<string, string>>): boolean {
  return runtimeOf(entrypoint) === 'node' && !Object.keys(environment).some((name) => readAtStart.test(name))
}

interface RuntimePlaces {
  /** Where the programs of dependencies are. */
  readonly programs: string
  /** The folder of installed dependencies. These shell commands list its content, each name followed by NUL. */
  readonly folder: string
  readonly list: string
}

export const runtimePlaces: Readonly<Record<Runtime, RuntimePlaces>> = {
  node: {
    programs: `${inMachine.app}/node_modules/.bin`,
    folder: inMachine.app,
    list: 'find . -name node_modules -prune -print0',
  },
  python: {
    programs: `${inMachine.pythonEnvironment}/bin`,
    folder: inMachine.pythonEnvironment,
    list: 'find . -mindepth 1 -maxdepth 1 -print0',
  },
}

/** The command that loads the entrypoint and runs its actions. */
export function appCommand(entrypoint: string, berthUrl: string): { command: string; args: readonly string[] } {
  const path = `${inMachine.app}/${entrypoint}`
  // Found by PATH, in the environment of the app or, for an app without dependencies, in the system.
  if (runtimeOf(entrypoint) === 'python') {
    return { command: 'python3', args: ['-u', inMachine.pythonProcess, path, berthUrl] }
  }
  const loader = /\.[cm]?ts$/.test(entrypoint) ? ['--import', inMachine.appTypeScript] : []
  return { command: inMachine.node, args: ['--enable-source-maps', ...loader, inMachine.appProcess, path, berthUrl] }
}
