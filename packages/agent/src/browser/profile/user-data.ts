import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { exists } from '@berth/runtime/files/exists.ts'
import { renewPreferences, writePreferences } from '../preferences.ts'
import { packProfile, unpackProfile } from './profile-archive.ts'

/** Whether Chromium opens the tabs of its last run or one empty page. */
export type Tabs = 'restore' | 'blank'

/** Chromium's user data folder: where all of the state of the browser is. Its path stays the same, whatever is in it. */
export class UserData {
  readonly folder: string

  constructor(homeFolder: string) {
    this.folder = join(homeFolder, '.config', 'chromium')
  }

  /** Before each launch. Says which tabs there will be: where none were saved, an empty page. */
  async prepare(config: AgentConfig, tabs: Tabs): Promise<Tabs> {
    await writePreferences(config, this.folder)
    if (tabs === 'restore' && (await this.#hasTabs())) return 'restore'
    // Else they would come back with the next run.
    for (const name of await this.#tabFolders()) await rm(join(this.folder, 'Default', name), { recursive: true })
    return 'blank'
  }

  /** Unpacks a profile beside the state in use, which stays untouched. */
  async takeIn(archive: Readable, config: AgentConfig): Promise<void> {
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

  /** Puts what was taken in into the place of the state in use. No Chromium may run. */
  async replace(): Promise<void> {
    await rm(this.#previous, { recursive: true, force: true })
    await rename(this.folder, this.#previous).catch(ignoreAbsence)
    await rename(this.#incoming, this.folder)
  }

  /** Removes the state in use. No Chromium may run. */
  async clear(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }

  /** Takes the replacement back, if there was one. No Chromium may run. */
  async takeBack(): Promise<void> {
    if (!(await exists(this.#previous))) return
    await rm(this.folder, { recursive: true, force: true })
    await rename(this.#previous, this.folder)
  }

  /** The state as an archive. No Chromium may run. */
  giveOut(): Readable {
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

  /** Chromium keeps them twice, the second time encrypted. */
  async #tabFolders(): Promise<readonly string[]> {
    const names = await readdir(join(this.folder, 'Default')).catch(() => [])
    return names.filter((name) => name.startsWith('Sessions'))
  }
}

function ignoreAbsence(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}
