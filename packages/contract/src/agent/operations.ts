import type { Operation } from './operation.ts'
import { computerOperations } from './operations/computer-operations.ts'
import { curlOperations, rawCurlOperations } from './operations/curl-operations.ts'
import { fsOperations } from './operations/fs-operations.ts'
import { logsOperations } from './operations/logs-operations.ts'
import { pageOperations } from './operations/page-operations.ts'
import { playwrightOperations } from './operations/playwright-operations.ts'
import { processOperations } from './operations/process-operations.ts'
import { replOperations } from './operations/repl-operations.ts'
import { webMcpOperations } from './operations/webmcp-operations.ts'

/** Every operation of the agent, in the order of the API document. */
export const operations: readonly Operation[] = [
  ...computerOperations,
  ...pageOperations,
  ...curlOperations,
  ...rawCurlOperations,
  ...playwrightOperations,
  ...replOperations,
  ...webMcpOperations,
  ...fsOperations,
  ...processOperations,
  ...logsOperations,
] as unknown as readonly Operation[]
