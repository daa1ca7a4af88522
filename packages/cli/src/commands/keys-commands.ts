import type { Command } from 'commander'
import { asWholeNumber } from '../output.ts'
import { type OperatorFlags, operatorCommand, printRows, runAsOperator } from './operator-command.ts'

interface KeyFlags extends OperatorFlags {
  readonly org?: string
  readonly project?: string
  readonly days?: number
}

const orgOption = ['--org <id or name>', 'the organization; required if there are several'] as const

export function addKeysCommands(program: Command): void {
  const keys = program
    .command('keys')
    .summary('create, list and revoke API keys')
    .description('For the operator, with API keys of any organization. Callers use /org/api_keys.')

  operatorCommand(keys.command('create <name>'))
    .summary('create an API key, which is shown only once')
    .option(...orgOption)
    .option('--project <id or name>', 'only for this project (default: for the whole organization)')
    .option('--days <number>', 'days until it expires (default: never)', asWholeNumber)
    .action((name: string, flags: KeyFlags) =>
      runAsOperator(flags, async (administration) => {
        const { org: organization, project, days } = flags
        const made = await administration.createKey({ organization, project, name, days })
        printRows(flags, [{ id: made.id, name: made.name, project: made.project, api_key: made.key }])
      }),
    )

  operatorCommand(keys.command('list'))
    .summary('list the API keys of an organization')
    .option(...orgOption)
    .action((flags: KeyFlags) =>
      runAsOperator(flags, async (administration) => {
        const all = await administration.listKeys(flags.org)
        printRows(
          flags,
          all.map((key) => ({
            id: key.id,
            name: key.name,
            key: key.maskedKey,
            organization: key.organization,
            project: key.project,
            created_at: key.createdAt.toISOString(),
            expires_at: key.expiresAt?.toISOString() ?? null,
          })),
        )
      }),
    )

  operatorCommand(keys.command('revoke <id>'))
    .summary('delete an API key; running servers refuse it within a second')
    .action((id: string, flags: OperatorFlags) =>
      runAsOperator(flags, async (administration) => {
        await administration.revokeKey(id)
        printRows(flags, [{ id, revoked: true }])
      }),
    )
}
