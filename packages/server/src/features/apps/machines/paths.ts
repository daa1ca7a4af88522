/** Paths as the machine of an app sees them. */
export const inMachine = {
  node: '/opt/berth/node',
  appProcess: '/opt/berth/programs/app-process.mjs',
  /** Has a process load TypeScript. */
  appTypeScript: '/opt/berth/programs/app-typescript.mjs',
  /** The same as the process of apps for Python. */
  pythonProcess: '/opt/berth/programs/app_process.py',
  appPackages: '/opt/berth/apps/node_modules',
  uv: '/opt/berth/apps/uv',
  python: '/usr/bin/python3',
  app: '/home/kernel/app',
  /** Programs that the code of apps finds by their names. */
  programs: '/home/kernel/.berth/bin',
  /** What is installed for Python apps. */
  pythonEnvironment: '/home/kernel/.berth/python',
  /** Package managers that only the build needs. */
  tools: '/home/kernel/.berth/tools',
  dependencies: '/tmp/dependencies.tgz',
  sourceArchive: '/tmp/source.zip',
  submodules: '/tmp/submodules',
} as const
