import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'

// Where distributions put programs. Not the PATH: the one of an ordinary user lacks sbin, and berth starts its
// programs with an environment of its own anyway.
const programFolders = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin']

const programLimitMilliseconds = 10_000

/** Path of a program; an absolute name is looked at as it is. */
export async function findProgram(name: string): Promise<string | undefined> {
  const candidates = name.startsWith('/') ? [name] : programFolders.map((folder) => join(folder, name))
  for (const candidate of candidates) {
    if (await isAllowed(candidate, constants.X_OK)) return candidate
  }
  return undefined
}

export async function isAllowed(path: string, mode: number): Promise<boolean> {
  try {
    await access(path, mode)
    return true
  } catch {
    return false
  }
}

export interface ProgramResult {
  readonly hasSucceeded: boolean
  /** Everything it wrote: some programs print their version to standard error. */
  readonly output: string
}

/** Runs a program for what it says; never rejects, since a program that cannot be started is a finding too. */
export function runProgram(program: string, args: readonly string[]): Promise<ProgramResult> {
  const options = { timeout: programLimitMilliseconds, env: { PATH: programFolders.join(':'), LC_ALL: 'C.UTF-8' } }
  return new Promise((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      resolve({ hasSucceeded: error === null, output: `${stdout}${stderr}`.trim() || (error?.message ?? '') })
    })
  })
}
