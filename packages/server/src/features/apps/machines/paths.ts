/** Paths inside the machine of an app. */
export const inMachine = {
  node: '/opt/berth/node',
  appProcess: '/opt/berth/programs/app-process.mjs',
  /** Enables a process to load TypeScript. */
  appTypeScript: '/opt/berth/programs/app-typescript.mjs',
  /** The process of apps for Python. */
  pythonProcess: '/opt/berth/programs/app_process.py',
  appPackages: '/opt/berth/apps/node_modules',
  uv: '/opt/berth/apps/uv',
  python: '/usr/bin/python3',
  app: '/home/kernel/app',
  /** The folder of programs in the PATH of apps. */
  programs: '/home/kernel/.berth/bin',
  /** The installed dependencies of Python apps. */
  pythonEnvironment: '/home/kernel/.berth/python',
  /** Package managers that only the build needs. */
  tools: '/home/kernel/.berth/tools',
  dependencies: '/tmp/dependencies.tgz',
  sourceArchive: '/tmp/source.zip',
  submodules: '/tmp/submodules',
} as const
