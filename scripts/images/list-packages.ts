import { systemPackages } from '@berth/server/host-checks/system-packages.ts'

/** Prints the Debian packages of an image: `node scripts/images/list-packages.ts machine|server|standalone`. */

// Certificates, by which programs of a session verify what they connect to.
const machine = ['ca-certificates', ...systemPackages.filter(({ isForTests }) => !isForTests).map(({ name }) => name)]

const packagesOf: Readonly<Record<string, readonly string[]>> = {
  machine,
  // Node.js comes with the programs, and the servers start none of the others.
  server: ['ca-certificates'],
  // Its first process: PostgreSQL and egress leave the process that started them, and something has to reap them.
  standalone: [...machine, 'tini'],
}

const packages = packagesOf[process.argv[2] ?? '']
if (packages === undefined) {
  process.stderr.write('usage: node scripts/images/list-packages.ts machine|server|standalone\n')
  process.exit(64)
}
process.stdout.write(`${packages.join('\n')}\n`)
