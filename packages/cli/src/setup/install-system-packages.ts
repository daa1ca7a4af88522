import { closeSync, openSync } from 'node:fs'
import { installCommand, missingSystemPackages, type SystemPackage } from '@berth/server/host-checks/system-packages.ts'
import { StartError } from '@berth/server/start-error.ts'
import { printLine } from '../output.ts'
import { aptInstall } from './apt.ts'
import { becomeRoot } from './become-root.ts'
import { waitForLock } from './file-lock.ts'

// Every user can open it, whatever the checkout, so it serves as a lock for all berth processes of a machine. apt locks
// other files.
const lockedFolder = '/var/lib/dpkg'

export interface InstallOptions {
  /** The packages to install: `required` are those that `berth serve` needs. */
  readonly demand: 'required' | 'all'
  /** Whether also what only tests need is installed. */
  readonly withTests: boolean
}

/**
 * Installs missing Debian packages. Takes 10 ms when none is missing. Concurrent calls of several processes run in
 * sequence.
 */
export async function installSystemPackages({ demand, withTests }: InstallOptions): Promise<void> {
  const isWanted = ({ isForTests }: SystemPackage) => withTests || !isForTests
  const missing = (await missingSystemPackages())?.filter(isWanted)
  if (missing?.length === 0) return
  if (missing === undefined) {
    // On other systems, `berth doctor` and `berth serve` check for the programs themselves.
    if (demand === 'all')
      throw new StartError(`berth cannot determine the installed packages of this system. ${doctorHint}`, 69)
    return
  }
  const isNeeded = demand === 'all' || missing.some(({ isRequired }) => isRequired)
  try {
    await installAs(await becomeRoot(), missing)
  } catch (error) {
    if (isNeeded || !(error instanceof StartError)) throw error
    printLine(`continuing without some features: ${error.message}`)
  }
}

const doctorHint = './berth doctor shows what is missing'

async function installAs(root: readonly string[] | undefined, missing: readonly SystemPackage[]): Promise<void> {
  if (root === undefined) {
    const names = missing.map(({ name }) => name).join(', ')
    const cure = `Run as root: apt-get update && ${installCommand(missing)}`
    throw new StartError(`these packages are missing: ${names}. ${cure}`, 69)
  }
  const folder = openSync(lockedFolder, 'r')
  try {
    await waitForLock(folder, 'another berth, which installs system packages')
    const stillMissing = new Set((await missingSystemPackages())?.map(({ name }) => name))
    const needed = missing.filter(({ name }) => stillMissing.has(name))
    if (needed.length > 0) await aptInstall(needed, root)
  } finally {
    closeSync(folder)
  }
}
