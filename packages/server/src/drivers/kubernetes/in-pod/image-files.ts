import { join } from 'node:path'

const folder = '/opt/berth'
const sandbox = join(folder, 'sandbox')

/** berth's own files in the image of machines. `write-image-files.ts` creates all of them except Node.js. */
export const imageFiles = {
  node: join(folder, 'node'),
  programs: join(folder, 'programs'),
  container: join(folder, 'container'),
  egress: join(folder, 'egress'),
  appPackagesFolder: join(folder, 'apps/node_modules'),
  sandbox,
  network: { interfaces: join(sandbox, 'interfaces'), ipv6: join(sandbox, 'ipv6'), rules: join(sandbox, 'rules') },
  seccompFilter: join(sandbox, 'seccomp'),
} as const
