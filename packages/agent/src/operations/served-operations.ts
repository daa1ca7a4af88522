import { servedComputer } from '../computer/served-computer.ts'
import { servedCurl } from '../curl/served-curl.ts'
import { servedFs } from '../fs/served-fs.ts'
import { servedLogs } from '../logs/served-logs.ts'
import { servedPage } from '../page/served-page.ts'
import { servedPlaywright } from '../playwright/served-playwright.ts'
import { servedProcesses } from '../process/served-processes.ts'
import { servedRepl } from '../repl/served-repl.ts'
import { servedWebMcp } from '../webmcp/served-webmcp.ts'
import { createWebMcp } from '../webmcp/webmcp-of-session.ts'
import type { OperationContext, ServedOperation } from './served-operation.ts'

/** All operations with their handlers. Heavy code is loaded on first use, not here. */
export function servedOperations(context: OperationContext): readonly ServedOperation[] {
  const webMcp = createWebMcp(context)
  return [
    ...servedComputer(context),
    ...servedPlaywright(context, webMcp),
    ...servedRepl(context, webMcp),
    ...servedWebMcp(webMcp),
    ...servedFs(),
    ...servedProcesses(context),
    ...servedLogs(context),
    ...servedPage(context),
    ...servedCurl(context),
  ]
}
