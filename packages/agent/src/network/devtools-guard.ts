import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { machinePorts } from '@berth/contract/agent/machine/machine-network.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { toDevToolsServer } from '../browser/devtools-server.ts'

/**
 * Makes Chromium's DevTools available to programs of the machine at the usual port, but not to pages: all connections
 * from Chromium are refused.
 */
export function startDevToolsGuard(chromiumPath: string, logger: Logger): void {
  createServer({ allowHalfOpen: true, noDelay: true }, (program) => {
    program.on('error', () => {}) // 'close' follows.
    if (!isOfOtherProgram(program, chromiumPath)) return void program.resetAndDestroy()
    const chromium = connect({ ...toDevToolsServer, port: machinePorts.chromium, allowHalfOpen: true, noDelay: true })
    chromium.on('error', () => program.resetAndDestroy())
    chromium.once('close', () => program.destroy())
    program.once('close', () => chromium.destroy())
    program.pipe(chromium)
    chromium.pipe(program)
  })
    .on('error', (error) => logger.error({ err: error }, 'programs cannot reach DevTools'))
    .listen(machinePorts.devTools, '127.0.0.1')
}

/**
 * Whether another process than Chromium holds the other end. A process that cannot be identified counts as Chromium.
 */
function isOfOtherProgram(program: Socket, chromiumPath: string): boolean {
  const inode = inodeOf(program)
  if (inode === undefined) return false
  const name = `socket:[${inode}]`
  return readdirSync('/proc').some((pid) => /^\d+$/.test(pid) && isOther(pid, chromiumPath) && holds(pid, name))
}

/** The inode of the other end of a loopback connection. */
function inodeOf({ remotePort = 0 }: Socket): string | undefined {
  const portText = (port: number) => port.toString(16).toUpperCase().padStart(4, '0')
  const ends = new RegExp(`:${portText(remotePort)} [0-9A-F]{8}:${portText(machinePorts.devTools)} `)
  const line = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .find((candidate) => ends.test(candidate))
  return line?.trim().split(/\s+/)[9]
}

function isOther(pid: string, chromiumPath: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`) !== chromiumPath
  } catch {
    return false // It has ended, or hides itself as Chromium's processes do.
  }
}

function holds(pid: string, socketName: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === socketName)
  } catch {
    return false
  }
}
