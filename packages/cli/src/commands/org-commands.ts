import type { Command } from 'commander'
import { asWholeNumber } from '../output.ts'
import { type OperatorFlags, operatorCommand, printRows, runAsOperator } from './operator-command.ts'

interface CreateFlags extends OperatorFlags {
  readonly maxSessions?: number
}

export function addOrgCommands(program: Command): void {
  const org = program
    .command('org')
    .summary('create and list organizations')
    .description('Organizations share only a server: each has its own projects, keys and limits.')

  operatorCommand(org.command('create <name>'))
    .summary('create an organization, with a project and an API key')
    .option('--max-sessions <number>', 'concurrent sessions (default: BERTH_MAX_SESSIONS of the server)', asWholeNumber)
    .action((name: string, flags: CreateFlags) =>
      runAsOperator(flags, async (administration) => {
        const made = await administration.createOrganization(name, flags.maxSessions)
        printRows(flags, [{ id: made.id, name: made.name, api_key: made.key }])
      }),
    )

  operatorCommand(org.command('list'))
    .summary('list the organizations')
    .action((flags: OperatorFlags) =>
      runAsOperator(flags, async (administration) => {
        const all = await administration.listOrganizations()
        printRows(
          flags,
          all.map(({ id, name, maxSessions, createdAt }) => ({
            id,
            name,
            max_sessions: maxSessions,
            created_at: createdAt.toISOString(),
          })),
        )
      }),
    )
}
