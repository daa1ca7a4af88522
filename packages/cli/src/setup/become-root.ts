import { execFile } from 'node:child_process'

/** The command prefix that runs a command as root: empty, or sudo. Undefined when this user cannot become root. */
export async function becomeRoot(): Promise<readonly string[] | undefined> {
  if (process.getuid?.() === 0) return []
  if (await succeeds('sudo', ['-n', 'true'])) return ['sudo', '-n']
  const canAskForPassword = process.stdin.isTTY && process.stderr.isTTY && (await succeeds('sudo', ['--version']))
  return canAskForPassword ? ['sudo'] : undefined
}

function succeeds(program: string, args: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(program, args, (error) => resolve(error === null))
  })
}
