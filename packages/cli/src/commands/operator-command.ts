import type { Administration } from '@berth/server/administration/administration.ts'
import type { Command } from 'commander'

export interface OperatorFlags {
  readonly dataDir?: string
  readonly json?: boolean
}

/** Adds the flags of every operator command. */
export function operatorCommand(command: Command): Command {
  return command
    .option('--data-dir <folder>', "the server's data folder (BERTH_DATA_DIR; default: ~/.berth); or set DATABASE_URL")
    .option('--json', 'print one JSON object for each row')
}

/** Runs work directly on the database, with or without a running server. Needs no API key. */
export async function runAsOperator(
  { dataDir }: OperatorFlags,
  work: (administration: Administration) => Promise<void>,
): Promise<void> {
  const [{ readConfig }, { administer }] = await Promise.all([
    import('@berth/server/config.ts'),
    import('@berth/server/administration/open-administration.ts'),
  ])
  await administer(readConfig({ dataDir }), work)
}

type Row = Readonly<Record<string, string | number | boolean | null>>

/** Prints a table, or one line of JSON per row. */
export function printRows({ json }: OperatorFlags, rows: readonly Row[]): void {
  if (json) {
    for (const row of rows) process.stdout.write(`${JSON.stringify(row)}\n`)
    return
  }
  const names = Object.keys(rows[0] ?? {})
  const lines = [names, ...rows.map((row) => names.map((name) => String(row[name] ?? '-')))]
  const widths = names.map((_name, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)))
  for (const line of lines) {
    process.stdout.write(
      `${line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd()}\n`,
    )
  }
}
