import { Command } from 'commander'
import { addClientCommands } from './client/add-client-commands.ts'
import { exitCodeOf } from './failure.ts'

/** The entry point of the package that is installed where no berth runs. */
const program = new Command('berth')
  .description('Sessions of a berth: isolated, real Chromium browsers for AI agents.')
  .usage('<command> [options]')
  .helpCommand(false)
  .showHelpAfterError('(berth --help lists the commands, berth <command> --help what one of them takes)')
  .addHelpText('after', '\nTo begin with: berth login https://berth.example.com')

addClientCommands(program)

try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = exitCodeOf(error)
}
