/** Paths as the machine of an app sees them. */
export const inMachine = {
  node: '/opt/berth/node',
  appProcess: '/opt/berth/programs/app-process.mjs',
  appPackages: '/opt/berth/apps/node_modules',
  app: '/home/kernel/app',
  /** Programs that the code of apps finds by their names. */
  programs: '/home/kernel/.berth/bin',
  dependencies: '/tmp/dependencies.tgz',
} as const
