import { userInfo } from 'node:os'
import { locale } from '../browser/child-program.ts'
import type { OperationContext } from '../operations/served-operation.ts'

/** The variable by which a process is known to belong to a command, however far from it it was started. */
export const familyVariable = 'BERTH_PROCESS_ID'

/** What every program of a session finds in its environment. Nothing is passed on from the agent's own. */
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
