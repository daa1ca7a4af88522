import type { ProcessResult } from '@berth/contract/agent/operations/process-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { z } from 'zod'
import { BoundedOutput } from './bounded-output.ts'
import type { Command } from './command.ts'
import { deadline } from './deadline.ts'
import { PipedProgram } from './piped-program.ts'
import { killFamily } from './process-family.ts'

/** Per stream; the response is one JSON text, which several programs hold in memory. */
const maxOutputBytes = 16 * 1024 * 1024

interface ExecuteOptions {
  readonly command: Command
  readonly runFolder: string
  readonly timeoutSeconds: number
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal
}

/**
 * Runs a command to its end. Processes that it leaves behind continue; but at the timeout, or when its caller
 * disconnects, everything that it has started is killed.
 */
export async function executeCommand(options: ExecuteOptions): Promise<z.input<typeof ProcessResult>> {
  const { command, runFolder, timeoutSeconds, signal } = options
  const output = { stdout: new BoundedOutput(maxOutputBytes), stderr: new BoundedOutput(maxOutputBytes) }
  const started = performance.now()
  const program = await PipedProgram.start(command, {
    runFolder,
    hasInput: false,
    onOutput: (stream, bytes) => output[stream].add(bytes),
  })
  const limit = deadline(timeoutSeconds, signal)
  const outcome = await Promise.race([program.ended, limit.over])
  limit.cancel()
  if (typeof outcome === 'object') {
    await killFamily({ id: command.id, pid: program.pid })
    throw new BerthError('process_timed_out', { seconds: timeoutSeconds })
  }
  const { stdout, stderr } = output
  return {
    exit_code: outcome,
    stdout_b64: stdout.toString('base64'),
    stderr_b64: stderr.toString('base64'),
    duration_ms: Math.round(performance.now() - started),
    ...(stdout.isCut && { stdout_truncated: true as const }),
    ...(stderr.isCut && { stderr_truncated: true as const }),
  }
}
