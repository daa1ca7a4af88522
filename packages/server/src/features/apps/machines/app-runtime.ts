import { inMachine } from './paths.ts'

export type Runtime = 'node' | 'python'

export const entrypointPattern = /\.([cm]?[jt]s|py)$/

export function runtimeOf(entrypoint: string): Runtime {
  return entrypoint.endsWith('.py') ? 'python' : 'node'
}

/** Node.js and its libraries read what these name when they start. */
const readAtStart = /^(NODE_(?!ENV$)|TSX_|LD_|SSL_|OPENSSL_)/

/** Whether its process can start before the files of the app are there. The program of Python may be one of them. */
export function startsWithoutFiles(entrypoint: string, environment: Readonly<Record<string, string>>): boolean {
  return runtimeOf(entrypoint) === 'node' && !Object.keys(environment).some((name) => readAtStart.test(name))
}

interface RuntimePlaces {
  /** Where programs of dependencies are. */
  readonly programs: string
  /** What is installed is in this folder, and these commands of a shell list it, each name with a NUL behind it. */
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

/** The program that loads the entrypoint and runs its actions, and what it is started with. */
export function appCommand(entrypoint: string, berthUrl: string): { command: string; args: readonly string[] } {
  const path = `${inMachine.app}/${entrypoint}`
  // Found by PATH: the environment of the app, or that of the system for one without dependencies.
  if (runtimeOf(entrypoint) === 'python') {
    return { command: 'python3', args: ['-u', inMachine.pythonProcess, path, berthUrl] }
  }
  const loader = /\.[cm]?ts$/.test(entrypoint) ? ['--import', inMachine.appTypeScript] : []
  return { command: inMachine.node, args: ['--enable-source-maps', ...loader, inMachine.appProcess, path, berthUrl] }
}
