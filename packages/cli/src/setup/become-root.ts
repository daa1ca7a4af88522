import { execFile } from 'node:child_process'

/** What to put before a command so that root runs it: nothing, or sudo. Undefined when this user cannot. */
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
