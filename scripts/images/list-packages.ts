import { systemPackages } from '@berth/server/host-checks/system-packages.ts'

/** Prints the Debian packages of an image: `node scripts/images/list-packages.ts machine|server`. */

const packagesOf: Readonly<Record<string, readonly string[]>> = {
  // Certificates, by which programs of a session verify what they connect to.
  machine: ['ca-certificates', ...systemPackages.filter(({ isForTests }) => !isForTests).map(({ name }) => name)],
  // Node.js comes with the programs, and the servers start none of the others.
  server: ['ca-certificates'],
}

const packages = packagesOf[process.argv[2] ?? '']
if (packages === undefined) {
  process.stderr.write('usage: node scripts/images/list-packages.ts machine|server\n')
  process.exit(64)
}
process.stdout.write(`${packages.join('\n')}\n`)
