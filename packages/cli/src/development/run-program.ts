import { spawn } from 'node:child_process'
import { once } from 'node:events'

interface RunOptions {
  /** Default: the folder of this process. */
  readonly cwd?: string
  readonly variables?: Readonly<Record<string, string>>
}

/** Runs a program, with its output shown, and resolves with its exit code: 1 if a signal ended it. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { cwd = process.cwd(), variables = {} }: RunOptions = {},
): Promise<number> {
  const child = spawn(program, args, { cwd, stdio: 'inherit', env: { ...process.env, ...variables } })
  const [code] = await once(child, 'exit')
  return typeof code === 'number' ? code : 1
}
