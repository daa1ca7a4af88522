import { execFile } from 'node:child_process'
import { readdir, readFile, statfs } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { MachineId } from '@berth/contract/common/ids.ts'
import type { Cgroups } from './cgroups/cgroups.ts'
import type { LocalMachine } from './local-machine.ts'
import { shortenLog } from './machine-log.ts'
import type { DiskLimits } from './sandbox/launch-machine.ts'
import { diskSize } from './sandbox/machine-disk.ts'

const run = promisify(execFile)

const mebibyte = 1024 ** 2
/** A machine whose log grows faster than this fills the disk on purpose. */
const maxLogBytes = 64 * mebibyte
/** The limit for all processes of a machine together. */
const maxOpenFiles = 100_000
/** The same ratio as on a disk image: one file per 16 KiB. */
const bytesPerFile = 16 * 1024
/** Free disk space changes for other reasons too. A smaller change causes no check. */
const lookAfterBytes = 256 * mebibyte
const lookAfterShare = 1 / 8
const lookAfterFiles = 20_000
const measureLimitMilliseconds = 60_000

interface MachineWatchOptions {
  readonly dataFolder: string
  readonly machines: ReadonlyMap<MachineId, LocalMachine>
  readonly cgroups: Cgroups
  readonly disk: DiskLimits
  /** Ends a machine that exceeds its share. */
  readonly end: (machine: LocalMachine, reason: string) => Promise<void>
}

interface Free {
  readonly bytes: number
  readonly files: number
}

/**
 * Watches what no kernel limit covers, and ends a machine that uses too much of it: logs, open files, and disk space on
 * hosts without disk images. A check costs a few system calls. Machines are checked one by one only when the numbers of
 * the host have changed much.
 */
export class MachineWatch {
  readonly #options: MachineWatchOptions
  readonly #timer: NodeJS.Timeout
  #measured: Free | undefined
  /** For the whole host, at the last check of machines, or a lower value since. */
  #openFiles = 0
  #isLooking = false

  constructor(options: MachineWatchOptions, intervalMilliseconds: number) {
    this.#options = options
    this.#timer = setInterval(() => void this.#tick(), intervalMilliseconds)
  }

  close(): void {
    clearInterval(this.#timer)
  }

  async #tick(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    // A failure, most often because a machine is being removed, is retried by the next check.
    await Promise.allSettled([this.#lookAtLogs(), this.#lookAtOpenFiles(), this.#lookAtDisk()])
    this.#isLooking = false
  }

  async #lookAtLogs(): Promise<void> {
    for (const machine of this.#options.machines.values()) {
      const bytes = await shortenLog(machine.folders.log)
      if (bytes > maxLogBytes)
        await this.#options.end(machine, `it has written ${inMebibytes(bytes)} to its log at once`)
    }
  }

  async #lookAtOpenFiles(): Promise<void> {
    const [allocated = 0] = (await readFile('/proc/sys/fs/file-nr', 'utf8')).split('\t').map(Number)
    const isCalm = allocated < maxOpenFiles || allocated - this.#openFiles < lookAfterFiles
    this.#openFiles = isCalm ? Math.min(this.#openFiles, allocated) : allocated
    if (isCalm) return
    const { machines, cgroups, end } = this.#options
    for (const [machineId, machine] of machines) {
      if (await hasManyFiles(await cgroups.listProcesses(machineId)))
        await end(machine, `it has more than ${maxOpenFiles} files open`)
    }
  }

  async #lookAtDisk(): Promise<void> {
    const { dataFolder, machines, disk } = this.#options
    if (disk.isImage || machines.size === 0) return
    const { bavail, bsize, ffree } = await statfs(dataFolder)
    const free = { bytes: bavail * bsize, files: ffree }
    const before = this.#measured
    const isCalm =
      before &&
      before.bytes - free.bytes < Math.min(lookAfterBytes, before.bytes * lookAfterShare) &&
      before.files - free.files < lookAfterFiles
    if (isCalm) {
      // Space that became free may be used again.
      this.#measured = { bytes: Math.max(before.bytes, free.bytes), files: Math.max(before.files, free.files) }
      return
    }
    this.#measured = free
    await this.#measure(free)
  }

  async #measure(free: Free): Promise<void> {
    const { machines, disk, end } = this.#options
    for (const machine of machines.values()) {
      const [bytes, files] = [
        await measureTree(machine.folders.disk, '--block-size=1'),
        await measureTree(machine.folders.disk, '--inodes'),
      ]
      const maxBytes = diskSize(disk.bytes, free.bytes + bytes - disk.reservedBytes)
      const maxFiles = maxBytes / bytesPerFile
      if (bytes > maxBytes)
        await end(machine, `it has written ${inMebibytes(bytes)}, of at most ${inMebibytes(maxBytes)}`)
      else if (files > maxFiles) await end(machine, `it has made ${files} files, of at most ${maxFiles}`)
    }
  }
}

/** Stops counting at the limit. */
async function hasManyFiles(pids: readonly number[]): Promise<boolean> {
  let files = 0
  for (const pid of pids) {
    files += (await readdir(`/proc/${pid}/fd`).catch(() => [])).length
    if (files > maxOpenFiles) return true
  }
  return false
}

/** Runs in a child process of low priority, because there may be hundreds of thousands of files. */
async function measureTree(folder: string, unit: string): Promise<number> {
  const args = ['-n', '19', 'du', '--summarize', '--one-file-system', unit, '--', folder]
  const options = { timeout: measureLimitMilliseconds, env: { PATH: '/usr/bin:/bin' } }
  // du reports folders that it cannot enter and counts the rest.
  const { stdout } = await run('/usr/bin/nice', args, options).catch((error: { stdout?: string }) => error)
  return Number.parseInt(stdout ?? '', 10) || 0
}

function inMebibytes(bytes: number): string {
  return `${Math.floor(bytes / mebibyte)} MiB`
}
