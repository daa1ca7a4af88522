import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const program = join(import.meta.dirname, '../../packages/cli/src/testing/run-commands.ts')

export interface CommandResult {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs commands of the command line in one process, one at a time. */
export class CommandRunner implements Disposable {
  readonly #child: ChildProcess

  private constructor(child: ChildProcess) {
    this.#child = child
  }

  static async open(cwd: string, env: Readonly<Record<string, string>>): Promise<CommandRunner> {
    const child = fork(program, { cwd, env, execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    await once(child, 'message')
    return new CommandRunner(child)
  }

  async run(args: readonly string[]): Promise<CommandResult> {
    this.#child.send(args)
    const ended = once(this.#child, 'exit').then(([code]) => {
      throw new Error(`the process of berth ${args.join(' ')} has ended with ${code}`)
    })
    const [result] = await Promise.race([once(this.#child, 'message'), ended])
    ended.catch(() => undefined)
    return result as CommandResult
  }

  [Symbol.dispose](): void {
    this.#child.disconnect()
  }
}
