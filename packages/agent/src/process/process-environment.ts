import { userInfo } from 'node:os'
import { locale } from '../browser/child-program.ts'
import type { OperationContext } from '../operations/served-operation.ts'

/** The environment variable that identifies all descendant processes of a command. */
export const familyVariable = 'BERTH_PROCESS_ID'

/** The environment of every program of a session. Nothing is inherited from the agent's own. */
export async function sessionEnvironment(context: OperationContext): Promise<Record<string, string>> {
  const { config, browser } = context
  const { username, shell } = userInfo()
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: config.home_folder,
    USER: username,
    LOGNAME: username,
    SHELL: shell ?? '/bin/sh',
    LANG: locale,
    XDG_RUNTIME_DIR: config.run_folder,
    ...(!config.headless && { DISPLAY: await browser.displayName() }),
  }
}
