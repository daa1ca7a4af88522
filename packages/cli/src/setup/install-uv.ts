import { execFile } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { uvFolder, uvProgram, uvVersion } from '@berth/server/host-checks/uv.ts'
import { StartError } from '@berth/server/start-error.ts'
import { printLine } from '../output.ts'
import { waitForLock } from './file-lock.ts'
import type { InstallOptions } from './install-system-packages.ts'

const run = promisify(execFile)
const limitMilliseconds = 10 * 60_000

/**
 * Installs uv, which no Debian package provides, from the package index that pip is configured for. Returns immediately
 * if it exists. Without it berth supports everything except Python apps.
 */
export async function installUv({ demand }: Pick<InstallOptions, 'demand'>): Promise<void> {
  if (existsSync(uvProgram)) return
  mkdirSync(dirname(uvFolder), { recursive: true })
  const lock = openSync(`${uvFolder}.lock`, 'w')
  try {
    await waitForLock(lock, 'another berth, which installs uv')
    if (!existsSync(uvProgram)) await install()
  } catch (cause) {
    const [reason = ''] = (cause as { stderr?: string }).stderr?.trim().split('\n').slice(-1) ?? []
    const message = `could not install uv, which installs Python apps: ${reason || (cause as Error).message}`
    if (demand === 'all') throw new StartError(message, 69)
    printLine(`continuing without Python apps: ${message}`)
  } finally {
    closeSync(lock)
  }
}

async function install(): Promise<void> {
  printLine(`installing uv ${uvVersion}: installs Python apps`)
  // Renamed when complete, so that an interrupted install is never used.
  const unfinished = `${uvFolder}.partial`
  await rm(unfinished, { recursive: true, force: true })
  await run('/usr/bin/python3', ['-m', 'venv', unfinished], { timeout: limitMilliseconds })
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--only-binary=:all:']
  await run(join(unfinished, 'bin/python3'), [...pip, `uv==${uvVersion}`], { timeout: limitMilliseconds })
  await rename(unfinished, uvFolder)
}
