import childProcess from 'node:child_process'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { LocalDriver } from '../../drivers/local/local-driver.ts'
import { openHostFolders } from '../../host/host-folders.ts'
import { openServiceUser } from '../../host/service-user.ts'
import { Trash } from '../../host/trash.ts'
import { probePrograms } from './local-testbed.ts'
import { machineSpec } from './machine-spec.ts'

/*
 * A process that starts and stops a machine, and kills itself before a given step, or some milliseconds after it has
 * started the machine's first process. Each change to the host that a next server could find is a step. If neither
 * occurs, the process exits with 0.
 *
 * Arguments: data folder, machine id, number of the deadly step, milliseconds from the process to the end (or `never`).
 */
const [dataFolder = '', machineId, deadlyStep, millisecondsAfterSpawn] = process.argv.slice(2)
let step = 0

function die(): void {
  process.kill(process.pid, 'SIGKILL')
}

function countSteps(owner: object, names: readonly string[]): void {
  const functions = owner as Record<string, (...args: unknown[]) => unknown>
  for (const name of names) {
    const original = functions[name]
    if (!original) throw new Error(`there is no ${name} to count`)
    functions[name] = (...args) => {
      step += 1
      if (step === Number(deadlyStep)) die()
      if (name === 'spawn' && millisecondsAfterSpawn !== 'never') setTimeout(die, Number(millisecondsAfterSpawn))
      return original.apply(owner, args)
    }
  }
}

const folders = await openHostFolders({ dataFolder, userRuntimeFolder: undefined })
const trash = await Trash.open(join(folders.data, 'trash'))
const driver = await LocalDriver.open({
  folders,
  trash,
  egressUser: await openServiceUser('egress'),
  programs: probePrograms,
})
countSteps(fs.promises, ['mkdir', 'rename', 'rm', 'rmdir', 'symlink', 'unlink'])
// The mode of a new socket is set by path.
countSteps(fs, ['chmodSync', 'openSync', 'renameSync'])
countSteps(childProcess, ['spawn'])
syncBuiltinESMExports()

await driver.start(machineSpec({ id: machineId as MachineId }), new AbortController().signal)
await driver.stop(machineId as MachineId)
driver.close()
await trash.close()
