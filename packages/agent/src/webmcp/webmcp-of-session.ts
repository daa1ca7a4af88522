import type { OperationContext } from '../operations/served-operation.ts'
import { sessionEnvironment } from '../process/process-environment.ts'
import { browserAddress, browserAddressQuestion } from '../script-process/browser-address.ts'
import { ToolProcess } from './tool-process.ts'
import { WebMcp } from './webmcp.ts'
import { answerScript } from './webmcp-of-scripts.ts'

/** Tools of the session's pages. Custom tools outside of pages may use the others. */
export function createWebMcp(context: OperationContext): WebMcp {
  const { config, browser } = context
  let process: ToolProcess | undefined
  const webMcp: WebMcp = new WebMcp({
    browser,
    process: () => {
      process ??= new ToolProcess({
        homeFolder: config.home_folder,
        environment: () => sessionEnvironment(context),
        browser: () => browser.endpoint(),
        ask: async (method, params, signal) =>
          method === browserAddressQuestion ? browserAddress(browser) : answerScript(webMcp, method, params, signal),
      })
      return process
    },
  })
  return webMcp
}
