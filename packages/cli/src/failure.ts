import { StartError } from '@berth/server/start-error.ts'
import { say } from './output.ts'

const internalErrorExitCode = 70 // As sysexits has it: a bug of ours.

/** Tells the person what went wrong, in one line where it is theirs to mend, and returns the exit code. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof StartError) {
    say(error.message)
    return error.exitCode
  }
  say(`an unexpected error happened, which is a bug of berth: ${error instanceof Error ? error.stack : String(error)}`)
  return internalErrorExitCode
}
