import { userInfo } from 'node:os'
import type { OperationContext } from '../operations/served-operation.ts'

/** The variable by which a process is known to belong to a command, however far from it it was started. */
export const familyVariable = 'BERTH_PROCESS_ID'

/**
 * What every program of a session finds in its environment. Nothing is passed on from the agent's own; the proxy is the
 * only way out of a machine, and programs are told of it in each of the spellings that they know.
 */
export async function sessionEnvironment(context: OperationContext): Promise<Record<string, string>> {
  const { config, browser, proxyPort } = context
  const { username, shell } = userInfo()
  const proxy = `http://127.0.0.1:${proxyPort}`
  const direct = 'localhost,127.0.0.1,::1'
  return {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: config.home_folder,
    USER: username,
    LOGNAME: username,
    SHELL: shell ?? '/bin/sh',
    LANG: 'C.UTF-8',
    XDG_RUNTIME_DIR: config.run_folder,
    ...(!config.headless && { DISPLAY: await browser.displayName() }),
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    NO_PROXY: direct,
    http_proxy: proxy,
    https_proxy: proxy,
    no_proxy: direct,
    // Node.js reads the variables above only with this one.
    NODE_USE_ENV_PROXY: '1',
  }
}
