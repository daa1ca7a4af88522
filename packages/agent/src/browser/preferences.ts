import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'

/** Chromium's value for "continue where you left off". Session cookies survive a restart only with it. */
const restoreLastTabs = 1

export const preferencesFile = 'Preferences'

type Preferences = Readonly<Record<string, unknown>>

/** Writes the preferences of a new browser profile; an existing profile keeps its own. */
export async function writePreferences(config: AgentConfig, userDataFolder: string): Promise<void> {
  const folder = join(userDataFolder, 'Default')
  await mkdir(folder, { recursive: true })
  try {
    await writeFile(join(folder, preferencesFile), JSON.stringify(preferencesOf(config)), { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Adapts the preferences of a profile from another session to this one. */
export async function renewPreferences(config: AgentConfig, userDataFolder: string): Promise<void> {
  const path = join(userDataFolder, 'Default', preferencesFile)
  const saved = await readPreferences(path)
  const ours = preferencesOf(config)
  const merged = Object.fromEntries(
    Object.entries(ours).map(([name, value]) => [name, isGroup(value) ? { ...groupIn(saved, name), ...value } : value]),
  )
  // Otherwise Chromium would ask before it opens the tabs.
  const profile = { ...groupIn(saved, 'profile'), exit_type: 'Normal' }
  await writeFile(path, JSON.stringify({ ...saved, ...merged, profile }))
}

/** Like Chromium, ignores what it cannot read. */
async function readPreferences(path: string): Promise<Preferences> {
  try {
    const saved: unknown = JSON.parse(await readFile(path, 'utf8'))
    return isGroup(saved) ? saved : {}
  } catch {
    return {}
  }
}

function groupIn(preferences: Preferences, name: string): Preferences {
  const value = preferences[name]
  return isGroup(value) ? value : {}
}

function isGroup(value: unknown): value is Preferences {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function preferencesOf({ home_folder, viewport: { width, height } }: AgentConfig): Preferences {
  const screen = { work_area_left: 0, work_area_top: 0, work_area_right: width, work_area_bottom: height }
  return {
    browser: {
      // Not with --window-size, which would also force this size on popups that request another.
      window_placement: { left: 0, top: 0, right: width, bottom: height, maximized: false, ...screen },
    },
    download: { default_directory: join(home_folder, 'Downloads'), prompt_for_download: false },
    session: { restore_on_startup: restoreLastTabs },
    // No prompt to save passwords above the page.
    credentials_enable_service: false,
  }
}
