import type { Command } from 'commander'
import { printLine } from '../output.ts'
import { installSystemPackages } from '../setup/install-system-packages.ts'
import { installUv } from '../setup/install-uv.ts'

export function addSetupCommand(program: Command): void {
  program
    .command('setup')
    .summary('install everything that berth needs')
    .description(
      'Installs what is missing: Node.js, npm packages, uv and, as root or with sudo, ' +
        'Debian packages. ./berth serve does the same; this command is for images and administrators.',
    )
    .action(async () => {
      await installSystemPackages({ demand: 'all', withTests: true })
      await installUv({ demand: 'all' })
      printLine('everything is installed')
    })
}
