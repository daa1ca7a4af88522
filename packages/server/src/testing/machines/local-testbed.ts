import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { MachineId } from '@berth/contract/common/ids.ts'
import type { Machine } from '../../drivers/driver.ts'
import type { DriverTestbed } from '../../drivers/driver-suite.ts'
import { LocalDriver, type LocalDriverOptions } from '../../drivers/local/local-driver.ts'
import { agentPrograms } from '../../drivers/local/sandbox/agent-programs.ts'
import { type HostFolders, openHostFolders } from '../../host/host-folders.ts'
import { openServiceUser } from '../../host/service-user.ts'
import { Trash } from '../../host/trash.ts'
import { ask } from '../ask.ts'

const probeAgent = join(import.meta.dirname, 'probe-agent.ts')
export const probePrograms = { entries: { agent: probeAgent }, packages: [] }

/** A data folder with local machines that run the probe agent. */
export class LocalTestbed implements DriverTestbed {
  readonly folders: HostFolders
  readonly #drivers: LocalDriver[] = []
  #trash: Promise<Trash> | undefined

  private constructor(folders: HostFolders) {
    this.folders = folders
  }

  static async open(): Promise<LocalTestbed> {
    const dataFolder = await mkdtemp(join(tmpdir(), 'berth-test-'))
    return new LocalTestbed(await openHostFolders({ dataFolder, userRuntimeFolder: undefined }))
  }

  async openDriver(changes: Partial<LocalDriverOptions> = {}): Promise<LocalDriver> {
    const driver = await LocalDriver.open({
      folders: this.folders,
      trash: await this.#openTrash(),
      egressUser: await openServiceUser('egress'),
      programs: probePrograms,
      ...changes,
    })
    this.#drivers.push(driver)
    return driver
  }

  /** Like `openDriver`, with machines that run berth's own agent. */
  async openDriverWithAgent(): Promise<LocalDriver> {
    return this.openDriver({ programs: agentPrograms })
  }

  /** Opens the trash again like the next server, which continues the work of an earlier one. */
  #openTrash(): Promise<Trash> {
    this.#trash ??= Trash.open(this.#trashFolder)
    return this.#trash
  }

  get #trashFolder(): string {
    return join(this.folders.data, 'trash')
  }

  /** The processes of the machine as the host sees them, including the sandbox. */
  async processesOf(machineId: MachineId): Promise<readonly number[]> {
    return processesThatMention(join(basename(this.folders.data), 'machines', machineId))
  }

  async killMachine(machineId: MachineId): Promise<void> {
    for (const pid of await this.processesOf(machineId)) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It ended together with an earlier one.
      }
    }
  }

  async remains(): Promise<readonly string[]> {
    const { data, runtime } = this.folders
    const trash = await Trash.open(this.#trashFolder)
    await trash.emptied()
    const processes = await processesThatMention(join(basename(data), 'machines/'))
    const folders = await Promise.all(
      [join(data, 'machines'), join(runtime, 'm'), this.#trashFolder].map((folder) => list(folder)),
    )
    const claims = await Promise.all(
      (await list('/run/berth/users')).map(async (link) => `${link} → ${await readlink(link).catch(() => '')}`),
    )
    return [
      ...processes.map((pid) => `process ${pid}`),
      ...folders.flat(),
      ...claims.filter((claim) => claim.includes(runtime)),
      ...(await groups(`berth-${basename(runtime)}-`)),
    ]
  }

  async close(): Promise<void> {
    for (const driver of this.#drivers) {
      for (const machineId of await driver.list()) await driver.stop(machineId)
      driver.close()
    }
    await (await this.#trash)?.emptied()
    await (await this.#trash)?.close()
    await rm(this.folders.data, { recursive: true })
    await rm(this.folders.runtime, { recursive: true })
  }
}

/** Runs a command in a machine with the probe agent. */
export async function runIn(machine: Machine, ...command: string[]): Promise<{ exitCode: number; output: string }> {
  return (await ask(machine, '/run', command)) as { exitCode: number; output: string }
}

/**
 * Finds processes by command line or by mounts from the folder, so that nothing that a machine has started is missed.
 * Compares only the last names of the folder, because a mount shows the path within its file system.
 */
async function processesThatMention(folder: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const mentions = pids.map(async (pid) => {
    const texts = await Promise.all(
      ['cmdline', 'mountinfo'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
    )
    return texts.some((text) => text.includes(folder)) ? [Number(pid)] : []
  })
  return (await Promise.all(mentions)).flat()
}

async function groups(prefix: string): Promise<readonly string[]> {
  const folders = await readdir('/sys/fs/cgroup', { recursive: true }).catch(() => [])
  return folders.filter((folder) => basename(folder).startsWith(prefix))
}

async function list(folder: string): Promise<readonly string[]> {
  return (await readdir(folder).catch(() => [])).map((name) => join(folder, name))
}
