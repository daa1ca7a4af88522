import type { Command } from 'commander'
import { printLine } from '../output.ts'
import { installSystemPackages } from '../setup/install-system-packages.ts'
import { installUv } from '../setup/install-uv.ts'

export function addSetupCommand(program: Command): void {
  program
    .command('setup')
    .summary('install all that berth needs, and stop')
    .description(
      'Installs all that berth needs and that is missing: Node.js, npm packages, uv and, as root or with sudo, ' +
        'Debian packages. ./berth serve does the same by itself; this is for images and for administrators.',
    )
    .action(async () => {
      await installSystemPackages({ demand: 'all', withTests: true })
      await installUv({ demand: 'all' })
      printLine('everything is installed')
    })
}
