import { runRepl } from '@berth/contract/agent/operations/repl-operations.ts'
import { type OperationContext, type ServedOperation, serve } from '../operations/served-operation.ts'
import { sessionEnvironment } from '../process/process-environment.ts'
import { browserAddress, browserAddressQuestion } from '../script-process/browser-address.ts'
import type { WebMcp } from '../webmcp/webmcp.ts'
import { answerScript } from '../webmcp/webmcp-of-scripts.ts'
import { Repl } from './repl.ts'

export function servedRepl(context: OperationContext, webMcp: WebMcp): readonly ServedOperation[] {
  const { config, browser } = context
  const repl = new Repl({
    homeFolder: config.home_folder,
    environment: () => sessionEnvironment(context),
    endpoint: () => browser.endpoint(),
    ask: async (method, params, signal) =>
      method === browserAddressQuestion ? browserAddress(browser) : answerScript(webMcp, method, params, signal),
  })
  return [
    serve(runRepl, ({ body: { code, reset, timeout_sec: timeoutSeconds }, signal }) =>
      repl.run({ code, reset, timeoutSeconds }, signal),
    ),
  ]
}
