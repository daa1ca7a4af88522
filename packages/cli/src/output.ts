import { join } from 'node:path'
import { InvalidArgumentError } from 'commander'

/** The checkout that this file belongs to. */
export const checkoutFolder = join(import.meta.dirname, '..', '..', '..')

/** One line for the person who started the command. Standard output is kept for what a command answers. */
export function say(line: string): void {
  process.stderr.write(`berth: ${line}\n`)
}

/** `0.4 s`, `12 s`, `3 min 5 s`. */
export function durationText(milliseconds: number): string {
  const seconds = milliseconds / 1000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 60) return `${Math.round(seconds)} s`
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds) % 60} s`
}

/** Reads the value of a flag. */
export function asWholeNumber(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number of at least 1.')
}
