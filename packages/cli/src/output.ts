import { join } from 'node:path'
import { InvalidArgumentError } from 'commander'

/** The checkout that contains this file. */
export const checkoutFolder = join(import.meta.dirname, '..', '..', '..')

/** Prints one line for the user to standard error. Standard output is reserved for the results of commands. */
export function printLine(line: string): void {
  process.stderr.write(`berth: ${line}\n`)
}

/** Ends quietly if the reader of the output closes it early, as `head` does. */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(0)
  })
}

/** `0.4 s`, `12 s`, `3 min 5 s`. */
export function durationText(milliseconds: number): string {
  const seconds = milliseconds / 1000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 60) return `${Math.round(seconds)} s`
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds) % 60} s`
}

/** Parses the value of a flag. */
export function asWholeNumber(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number of at least 1.')
}
