import { once } from 'node:events'
import { constants, openSync } from 'node:fs'
import { mkdir, readdir, readFile, readlink, rename, rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { KeyedQueue } from '@berth/runtime/async/keyed-queue.ts'
import { exists } from '@berth/runtime/files/exists.ts'
import { makeNamedPipes } from '../../process/pipes.ts'
import { preferencesFile, renewPreferences, writePreferences } from '../preferences.ts'
import { packProfile, stateFolder, unpackProfile } from './profile-archive.ts'

/** Whether Chromium opens the tabs of its last run, or one empty page. */
export type Tabs = 'restore' | 'blank'

/** Chromium's user data folder, which contains all state of the browser. Its path never changes. */
export class UserData {
  readonly folder: string
  /** Whether a Chromium has been started that waits for its state. */
  #isAwaited = false
  /** The preparation of a launch ahead and the replacement of the state, one at a time: both replace the same files. */
  readonly #changes = new KeyedQueue<'state'>()

  constructor(homeFolder: string) {
    this.folder = join(homeFolder, '.config', 'chromium')
  }

  /** Called before each launch. Returns which tabs will open: an empty page if none were saved. */
  async prepare(config: AgentConfig, tabs: Tabs): Promise<Tabs> {
    await writePreferences(config, this.folder)
    if (tabs === 'restore' && (await this.#hasTabs())) return 'restore'
    // Otherwise they would be restored by the next run.
    for (const name of await this.#tabFolders()) await rm(join(this.#state, name), { recursive: true })
    return 'blank'
  }

  /**
   * Prepares a launch ahead of the profile. Chromium reads the preferences before the rest of its state, so it waits at the
   * pipe in their place.
   */
  prepareAhead(): Promise<void> {
    return this.#changes.run('state', async () => {
      await mkdir(this.#state, { recursive: true })
      await makeNamedPipes([join(this.#state, preferencesFile)])
      this.#isAwaited = true
    })
  }

  /** Lets the waiting Chromium continue with the state that has replaced the pipe. */
  async release(): Promise<void> {
    this.#isAwaited = false
    const preferences = await readFile(join(this.#state, preferencesFile))
    const pipe = openToWrite(join(this.#awaited, preferencesFile))
    // If Chromium has not opened the pipe yet, it will find the file in its place.
    if (pipe) await writeAll(pipe, preferences)
    await rm(this.#awaited, { recursive: true })
  }

  /** Removes everything that the waiting Chromium has written. It must have ended. */
  async stopAwaiting(): Promise<void> {
    if (!this.#isAwaited) return
    this.#isAwaited = false
    const isReplaced = await exists(this.#awaited)
    if (isReplaced) {
      await mkdir(this.#incoming, { recursive: true })
      await rename(this.#state, join(this.#incoming, stateFolder))
      await rm(this.#awaited, { recursive: true })
    }
    await this.#removeSocket()
    await this.clear()
    if (isReplaced) await rename(this.#incoming, this.folder)
  }

  /** A killed Chromium leaves the folder of the socket by which it would hear of a second launch. */
  async #removeSocket(): Promise<void> {
    const socket = await readlink(join(this.folder, 'SingletonSocket')).catch(() => undefined)
    if (socket !== undefined) await rm(dirname(socket), { recursive: true, force: true })
  }

  /** Unpacks a profile beside the state in use, which stays unchanged. */
  async unpack(archive: Readable, config: AgentConfig): Promise<void> {
    await rm(this.#incoming, { recursive: true, force: true })
    await mkdir(this.#incoming, { recursive: true })
    try {
      await unpackProfile(archive, this.#incoming)
      await renewPreferences(config, this.#incoming)
    } catch (error) {
      await rm(this.#incoming, { recursive: true, force: true })
      throw error
    }
  }

  /** Replaces the state in use with the unpacked profile. Chromium must not be running, except one that waits for it. */
  replace(): Promise<void> {
    return this.#changes.run('state', () => (this.#isAwaited ? this.#replacePipe() : this.#replaceFolder()))
  }

  async #replaceFolder(): Promise<void> {
    await rm(this.#previous, { recursive: true, force: true })
    await rename(this.folder, this.#previous).catch(ignoreAbsence)
    await rename(this.#incoming, this.folder)
  }

  async #replacePipe(): Promise<void> {
    if (await exists(this.#awaited)) await rm(this.#state, { recursive: true })
    else await rename(this.#state, this.#awaited)
    await rename(join(this.#incoming, stateFolder), this.#state)
    await rm(this.#incoming, { recursive: true })
  }

  /** Removes the state in use. Chromium must not be running. */
  async clear(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }

  /** Reverts the replacement, if there was one. Chromium must not be running. */
  async revert(): Promise<void> {
    if (!(await exists(this.#previous))) return
    await rm(this.folder, { recursive: true, force: true })
    await rename(this.#previous, this.folder)
  }

  /** The state as an archive. Chromium must not be running. */
  pack(): Readable {
    return packProfile(this.folder)
  }

  get #state(): string {
    return join(this.folder, stateFolder)
  }

  get #awaited(): string {
    return `${this.folder}.awaited`
  }

  get #incoming(): string {
    return `${this.folder}.incoming`
  }

  get #previous(): string {
    return `${this.folder}.previous`
  }

  async #hasTabs(): Promise<boolean> {
    return (await this.#tabFolders()).length > 0
  }

  /** Chromium saves its tabs twice, the second time encrypted. */
  async #tabFolders(): Promise<readonly string[]> {
    const names = await readdir(this.#state).catch(() => [])
    return names.filter((name) => name.startsWith('Sessions'))
  }
}

function ignoreAbsence(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}

/** Undefined when nobody has opened it to read. */
function openToWrite(path: string): Socket | undefined {
  try {
    const fd = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
    return new Socket({ fd, readable: false, writable: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error
    return undefined
  }
}

/** Resolves when the reader has taken all of it, or has ended: then its end tells more. */
async function writeAll(pipe: Socket, content: Uint8Array): Promise<void> {
  pipe.on('error', () => {})
  pipe.end(content)
  await once(pipe, 'close')
}
