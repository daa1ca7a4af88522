import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'

/** Writes the preferences of a new browser profile; one that exists keeps its own. */
export async function writePreferences(config: AgentConfig, profileFolder: string): Promise<void> {
  const folder = join(profileFolder, 'Default')
  await mkdir(folder, { recursive: true })
  try {
    await writeFile(join(folder, 'Preferences'), JSON.stringify(preferencesOf(config)), { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function preferencesOf({ home_folder, viewport: { width, height } }: AgentConfig): object {
  const screen = { work_area_left: 0, work_area_top: 0, work_area_right: width, work_area_bottom: height }
  return {
    browser: {
      // Not by --window-size: that would give popups the same size, whatever their page asked for.
      window_placement: { left: 0, top: 0, right: width, bottom: height, maximized: false, ...screen },
    },
    download: { default_directory: join(home_folder, 'Downloads'), prompt_for_download: false },
    // No offer to save passwords above the page.
    credentials_enable_service: false,
  }
}
