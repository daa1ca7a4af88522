import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { addClientCommands } from './add-client-commands.ts'

/** The command line for computers without a berth server. */
export function clientProgram(): Command {
  const program = new Command('berth')
    .description('Isolated, real Chromium sessions for AI agents: the client of a berth server.')
    .usage('<command> [options]')
    .version(packageJson.version, '-v, --version', 'print the version of this program')
    // Some commands have a flag with the name of a global one: deploy --version.
    .enablePositionalOptions()
    .helpCommand(false)
    .showHelpAfterError('(berth --help lists the commands, berth <command> --help explains one)')
    .addHelpText('after', '\nStart with: berth login https://berth.example.com')
  addClientCommands(program)
  return program
}
