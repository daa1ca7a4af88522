import type { Command } from 'commander'
import { formatSources, runChecks } from '../development/run-checks.ts'

export function addCheckCommand(program: Command): void {
  program
    .command('check')
    .summary('check the source: format, lint, types, boundaries, dead code, generated files, lists')
    .description('Runs all static checks in parallel, the same as CI.')
    .option('--fix', 'format the source and sort its imports first')
    .action(async ({ fix }: { fix?: boolean }) => {
      if (fix) await formatSources()
      const isClean = await runChecks()
      if (!isClean) process.exitCode = 1
    })
}
