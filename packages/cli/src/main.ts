import { Command } from 'commander'
import packageJson from '../package.json' with { type: 'json' }
import { addBenchCommand } from './commands/bench-command.ts'
import { addCheckCommand } from './commands/check-command.ts'
import { addDoctorCommand } from './commands/doctor-command.ts'
import { showHostExamples } from './commands/host-examples.ts'
import { addKeysCommands } from './commands/keys-commands.ts'
import { addOrgCommands } from './commands/org-commands.ts'
import { addServeCommand } from './commands/serve-command.ts'
import { addSetupCommand } from './commands/setup-command.ts'
import { addTestCommand } from './commands/test-command.ts'
import { exitCodeOf } from './failure.ts'
import { endWithReader } from './output.ts'

const program = new Command('berth')
  .description('Isolated, real Chromium sessions for AI agents behind an HTTP API, on your own machines.')
  .usage('<command> [options]')
  .version(packageJson.version, '-v, --version', 'print the version of this program')
  // Some commands have a flag with the name of a global one: deploy --version.
  .enablePositionalOptions()
  .configureHelp({ showGlobalOptions: false })
  .helpCommand(false)
  .showHelpAfterError('(./berth --help lists the commands, ./berth <command> --help explains one)')
  .addHelpText(
    'after',
    `
Start with:
  ./berth serve          starts the server; the first start installs what it needs and prints an API key
  ./berth doctor         checks this machine, and shows how to fix problems

Each command has a --help of its own.`,
  )

/** These need no API, and start faster without its commands. */
const hostCommands = new Set(['serve', 'setup', 'doctor', 'org', 'keys', 'test', 'check', 'bench', '-v', '--version'])

program.commandsGroup('On this host:')
addServeCommand(program)
addSetupCommand(program)
addDoctorCommand(program)
addOrgCommands(program)
addKeysCommands(program)
addTestCommand(program)
addCheckCommand(program)
addBenchCommand(program)
showHostExamples(program)

if (!hostCommands.has(process.argv[2] ?? '')) {
  const { addClientCommands } = await import('./client/add-client-commands.ts')
  addClientCommands(program)
  endWithReader()
}

try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = exitCodeOf(error)
}
