import type { CheckTarget } from '@berth/server/host-checks/host-check.ts'
import type { Finding } from '@berth/server/host-checks/host-checks.ts'
import type { Command } from 'commander'
import pc from 'picocolors'

interface DoctorFlags {
  readonly port?: string
  readonly host?: string
  readonly dataDir?: string
  readonly json?: boolean
}

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .summary('check this machine, and explain how to fix problems')
    .description(
      'Checks everything that berth needs from this machine. Exits with 1 when something fails that ./berth serve ' +
        'needs; a warning costs a feature or a safety margin.',
    )
    .option('--port <number>', 'the port that the server would use (BERTH_PORT; default: 8080)')
    .option('--host <address>', 'the address that it would listen on (BERTH_HOST; default: 127.0.0.1)')
    .option('--data-dir <folder>', 'the folder that it would use (BERTH_DATA_DIR; default: ~/.berth)')
    .option('--json', 'print the findings as one JSON object')
    .action(examineHost)
}

async function examineHost({ json, ...flags }: DoctorFlags): Promise<void> {
  const [{ readConfig }, { runHostChecks }] = await Promise.all([
    import('@berth/server/config.ts'),
    import('@berth/server/host-checks/host-checks.ts'),
  ])
  const target: CheckTarget = readConfig(flags, process.env)

  const findings = await runHostChecks(target)

  const isFit = findings.every(({ verdict }) => verdict.state !== 'failure')
  process.stdout.write(
    json ? `${JSON.stringify({ is_fit: isFit, findings: findings.map(asJson) })}\n` : asTable(findings),
  )
  if (!isFit) process.exitCode = 1
}

function asJson({ name, verdict }: Finding) {
  return { name, ...verdict }
}

const marks = { ok: pc.green('ok     '), warning: pc.yellow('warning'), failure: pc.red('FAILURE') }

/** Formats one line per check. Commands that fix failed checks follow below their lines. */
export function asTable(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ name }) => name.length))
  const lines = findings.flatMap(({ name, verdict }) => [
    `${marks[verdict.state]}  ${name.padEnd(width)}  ${verdict.fact}`,
    ...('cure' in verdict ? [`${' '.repeat(width + 11)}${pc.bold(`→ ${verdict.cure}`)}`] : []),
  ])
  return `${[...lines, '', summary(findings)].join('\n')}\n`
}

function summary(findings: readonly Finding[]): string {
  const count = (state: string) => findings.filter(({ verdict }) => verdict.state === state).length
  const failures = count('failure')
  const warnings = count('warning')
  if (failures > 0) return `${failures} of ${findings.length} checks failed: ./berth serve will not work here.`
  if (warnings > 0) return `./berth serve will work here, with warnings for ${warnings} of ${findings.length} checks.`
  return `All ${findings.length} checks passed.`
}
