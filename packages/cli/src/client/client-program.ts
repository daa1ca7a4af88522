import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { addClientCommands } from './add-client-commands.ts'

/** The command line for computers without a berth server. */
export function clientProgram(): Command {
  const program = new Command('berth')
    .description('Sessions of a berth: isolated, real Chromium browsers for AI agents.')
    .usage('<command> [options]')
    .version(packageJson.version, '-v, --version', 'print the version of this program')
    // Some commands have a flag with the name of a global one: deploy --version.
    .enablePositionalOptions()
    .helpCommand(false)
    .showHelpAfterError('(berth --help lists the commands, berth <command> --help what one of them takes)')
    .addHelpText('after', '\nTo begin with: berth login https://berth.example.com')
  addClientCommands(program)
  return program
}
