import { StartError } from '@berth/server/start-error.ts'
import { ApiFailure } from './api/api-failure.ts'
import { printLine } from './output.ts'

const internalErrorExitCode = 70 // EX_SOFTWARE of sysexits: a bug of berth.

/** Prints the error, in one line if the user can fix it, and returns the exit code. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof StartError || error instanceof ApiFailure) {
    printLine(error.message)
    return error.exitCode
  }
  printLine(`unexpected error, which is a bug in berth: ${error instanceof Error ? error.stack : String(error)}`)
  return internalErrorExitCode
}
