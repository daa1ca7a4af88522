import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'

// The folders in which distributions install programs. PATH is not used: that of an ordinary user lacks sbin, and berth
// starts its programs with an environment of its own anyway.
const programFolders = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin']

const programLimitMilliseconds = 10_000

/** Finds the path of a program. Absolute names are checked as they are. */
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
  /** Includes standard error, where some programs print their version. */
  readonly output: string
}

/** Runs a program and returns its output. Never rejects, because a program that cannot be started is a finding too. */
export function runProgram(program: string, args: readonly string[]): Promise<ProgramResult> {
  const options = { timeout: programLimitMilliseconds, env: { PATH: programFolders.join(':'), LC_ALL: 'C.UTF-8' } }
  return new Promise((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      resolve({ hasSucceeded: error === null, output: `${stdout}${stderr}`.trim() || (error?.message ?? '') })
    })
  })
}
