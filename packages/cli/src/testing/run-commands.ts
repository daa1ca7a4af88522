import { clientProgram } from '../client/client-program.ts'
import { exitCodeOf } from '../failure.ts'

/*
 * Runs commands one at a time in one process, for tests of all commands, because loading the contract takes longer than
 * most commands. It communicates over an IPC channel on which each message contains the arguments of a command.
 */

const program = clientProgram()
const output = { stdout: '', stderr: '' }
for (const name of ['stdout', 'stderr'] as const) {
  const capture = (chunk: string | Uint8Array, ...rest: readonly unknown[]): boolean => {
    output[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('latin1')
    const done = rest.find((each) => typeof each === 'function') as (() => void) | undefined
    if (done) process.nextTick(done)
    return true
  }
  process[name].write = capture
}

/** Thrown where commander would exit: after a wrong flag, and after a help text. */
class Exit extends Error {
  readonly exitCode: number

  constructor(code: number) {
    super(`exit ${code}`)
    this.exitCode = code
  }
}
const end = process.exit.bind(process)
process.exit = (code) => {
  throw new Exit(Number(code ?? 0))
}

process.on('message', (args: string[]) => {
  void runCommand(args)
})
process.on('disconnect', () => end())
process.send?.({})

async function runCommand(args: readonly string[]): Promise<void> {
  Object.assign(output, { stdout: '', stderr: '' })
  process.exitCode = 0
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    process.exitCode = error instanceof Exit ? error.exitCode : exitCodeOf(error)
  }
  process.send?.({ exitCode: process.exitCode, ...output })
}
