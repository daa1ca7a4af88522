import type { MachineOperations, ProgramRequest } from './machine-operations.ts'
import { OutputLines } from './output-lines.ts'

/** Runs a program until it exits, or kills it when the signal aborts. Resolves with its exit code. */
export async function runProgram(
  operations: MachineOperations,
  request: ProgramRequest,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<number> {
  const id = await operations.spawn(request, signal)
  const lines = new OutputLines((line) => onLine(line))
  let exitCode: number | undefined
  try {
    for await (const piece of operations.output(id, signal)) {
      lines.take(piece)
      if ('event' in piece) exitCode = piece.exit_code
    }
  } finally {
    if (exitCode === undefined) await operations.kill(id).catch(() => {})
  }
  lines.end()
  signal.throwIfAborted()
  if (exitCode === undefined) throw new Error('the machine ended while a program ran in it')
  return exitCode
}
