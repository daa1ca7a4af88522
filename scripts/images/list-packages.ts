import { systemPackages } from '@berth/server/host-checks/system-packages.ts'

/** Prints the Debian packages of an image: `node scripts/images/list-packages.ts machine|server`. */

const packagesOf: Readonly<Record<string, readonly string[]>> = {
  // Certificates, with which programs of a session verify their connections.
  machine: ['ca-certificates', ...systemPackages.filter(({ isForTests }) => !isForTests).map(({ name }) => name)],
  // Node.js is part of the programs, and servers start none of the other packages.
  server: ['ca-certificates'],
}

const packages = packagesOf[process.argv[2] ?? '']
if (packages === undefined) {
  process.stderr.write('usage: node scripts/images/list-packages.ts machine|server\n')
  process.exit(64)
}
process.stdout.write(`${packages.join('\n')}\n`)
