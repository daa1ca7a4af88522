import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { ReachableMachine } from '../../../drivers/driver.ts'
import { MachineOperations } from './machine-operations.ts'
import { runProgram } from './run-program.ts'

const folder = '/tmp/rehearsal'
/** An archive with the file `a`. One without files would be rejected. */
const archive = Buffer.from(
  'UEsDBBQAAAAAAAAAIQD4s92XAQAAAAEAAAABAAAAYS1QSwECFAMUAAAAAAAAACEA+LPdlwEAAAABAAAAAQAAAAAAAAAAAAAAgAEAAAAAYVBLBQYAAAAAAQABAC8AAAAgAAAAAAA=',
  'base64',
)

/**
 * Makes the agent of a new machine run once through the operations that an app needs: the first run takes several times
 * as long. Leaves nothing behind.
 */
export async function rehearse(machine: ReachableMachine, signal: AbortSignal): Promise<void> {
  const operations = new MachineOperations(machine)
  await operations.unpack(Readable.from([archive]), folder, signal)
  await operations.writeFile(`${folder}/file`, Readable.from([Buffer.from('-')]), signal)
  await buffer(await operations.readFile(`${folder}/file`, signal))
  const reader = await operations.spawn({ command: '/bin/cat', args: [] }, signal)
  await operations.write(reader, '-', signal)
  await operations.kill(reader)
  const exitCode = await runProgram(operations, { command: '/bin/rm', args: ['-r', folder] }, () => {}, signal)
  if (exitCode !== 0) throw new Error('the rehearsal of a machine for apps left files')
}
