import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { printLine } from '../output.ts'

/**
 * Waits for the lock of an open file or folder. The lock belongs to the descriptor, not to the program that takes it
 * for us: it is released when the descriptor is closed, at the latest when this process ends.
 */
export async function waitForLock(descriptor: number, holder: string): Promise<void> {
  if (await flock(['--nonblock'], descriptor)) return
  printLine(`waiting for ${holder}`)
  if (!(await flock([], descriptor))) throw new Error('flock(1) does not work')
}

async function flock(options: readonly string[], descriptor: number): Promise<boolean> {
  const child = spawn('flock', [...options, '3'], { stdio: ['ignore', 'ignore', 'inherit', descriptor] })
  const [exitCode] = await once(child, 'exit')
  return exitCode === 0
}
