import { systemPackages } from '@berth/server/host-checks/system-packages.ts'

/** Prints the Debian packages of an image: `node scripts/images/list-packages.ts machine|server|standalone`. */

// Certificates, with which programs of a session verify their connections.
const machine = ['ca-certificates', ...systemPackages.filter(({ isForTests }) => !isForTests).map(({ name }) => name)]

const packagesOf: Readonly<Record<string, readonly string[]>> = {
  machine,
  // Node.js is part of the programs, and servers start none of the other packages.
  server: ['ca-certificates'],
  // The first process of the container, which reaps orphans: PostgreSQL and egress outlive the process that started them.
  standalone: [...machine, 'tini'],
}

const packages = packagesOf[process.argv[2] ?? '']
if (packages === undefined) {
  process.stderr.write('usage: node scripts/images/list-packages.ts machine|server|standalone\n')
  process.exit(64)
}
process.stdout.write(`${packages.join('\n')}\n`)
