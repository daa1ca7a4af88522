import { runRepl } from '@berth/contract/agent/repl-operations.ts'
import { type OperationContext, type ServedOperation, serve } from '../operations/served-operation.ts'
import { scriptEnvironment } from '../script-process/script-process.ts'
import type { WebMcp } from '../webmcp/webmcp.ts'
import { answerScript } from '../webmcp/webmcp-of-scripts.ts'
import { Repl } from './repl.ts'

export function servedRepl({ config, browser }: OperationContext, webMcp: WebMcp): readonly ServedOperation[] {
  const repl = new Repl({
    homeFolder: config.home_folder,
    environment: scriptEnvironment(config),
    endpoint: () => browser.endpoint(),
    ask: (method, params, signal) => answerScript(webMcp, method, params, signal),
  })
  return [
    serve(runRepl, ({ body: { code, reset, timeout_sec: timeoutSeconds }, signal }) =>
      repl.run({ code, reset, timeoutSeconds }, signal),
    ),
  ]
}
