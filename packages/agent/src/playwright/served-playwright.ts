import { Buffer } from 'node:buffer'
import {
  defaultExecutor,
  deletePlaywrightExecutor,
  executePlaywrightCode,
  listPlaywrightExecutors,
} from '@berth/contract/agent/operations/playwright-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { errorBody } from '@berth/runtime/http/error-reply.ts'
import { Content, type OperationContext, type ServedOperation, serve } from '../operations/served-operation.ts'
import { sessionEnvironment } from '../process/process-environment.ts'
import type { WebMcp } from '../webmcp/webmcp.ts'
import { answerScript } from '../webmcp/webmcp-of-scripts.ts'
import { Executors, maxNamedExecutors } from './executor-registry.ts'

export function servedPlaywright(context: OperationContext, webMcp: WebMcp): readonly ServedOperation[] {
  const { browser } = context
  const executors = new Executors({
    browser,
    environment: () => sessionEnvironment(context),
    library: browser.config.stealth ? 'patchright' : 'playwright',
    now: () => systemClock.now(),
    ask: (method, params, signal) => answerScript(webMcp, method, params, signal),
  })
  return [
    serve(executePlaywrightCode, async ({ body, signal }) => {
      const { code, timeout_sec: timeoutSeconds, executor = defaultExecutor } = body
      return (await executors.run(executor, { code, timeoutSeconds, signal })) ?? (await limitReached(executors))
    }),
    serve(listPlaywrightExecutors, async () => ({ executors: [...(await executors.list())] })),
    serve(deletePlaywrightExecutor, ({ params, query }) => executors.delete(params.name, query.close_tab)),
  ]
}

/** An error with the list of executors, so that the caller can choose which to delete. */
async function limitReached(executors: Executors): Promise<Content> {
  const error = new BerthError('executor_limit_reached', { limit: maxNamedExecutors })
  const body = { ...errorBody(error), executors: await executors.list() }
  return new Content(Buffer.from(JSON.stringify(body)), {
    status: error.status,
    headers: { 'content-type': 'application/json; charset=utf-8', 'x-should-retry': 'false' },
  })
}
