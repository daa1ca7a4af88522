import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { exists } from '@berth/runtime/files/exists.ts'
import { renewPreferences, writePreferences } from '../preferences.ts'
import { packProfile, unpackProfile } from './profile-archive.ts'

/** Whether Chromium opens the tabs of its last run, or one empty page. */
export type Tabs = 'restore' | 'blank'

/** Chromium's user data folder, which contains all state of the browser. Its path never changes. */
export class UserData {
  readonly folder: string

  constructor(homeFolder: string) {
    this.folder = join(homeFolder, '.config', 'chromium')
  }

  /** Called before each launch. Returns which tabs will open: an empty page if none were saved. */
  async prepare(config: AgentConfig, tabs: Tabs): Promise<Tabs> {
    await writePreferences(config, this.folder)
    if (tabs === 'restore' && (await this.#hasTabs())) return 'restore'
    // Otherwise they would be restored by the next run.
    for (const name of await this.#tabFolders()) await rm(join(this.folder, 'Default', name), { recursive: true })
    return 'blank'
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

  /** Replaces the state in use with the unpacked profile. Chromium must not be running. */
  async replace(): Promise<void> {
    await rm(this.#previous, { recursive: true, force: true })
    await rename(this.folder, this.#previous).catch(ignoreAbsence)
    await rename(this.#incoming, this.folder)
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
    const names = await readdir(join(this.folder, 'Default')).catch(() => [])
    return names.filter((name) => name.startsWith('Sessions'))
  }
}

function ignoreAbsence(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
