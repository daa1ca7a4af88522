import { computerOperations } from './computer-operations.ts'
import { curlOperations, rawCurlOperations } from './curl-operations.ts'
import { fsOperations } from './fs-operations.ts'
import { logsOperations } from './logs-operations.ts'
import type { Operation } from './operation.ts'
import { pageOperations } from './page-operations.ts'
import { playwrightOperations } from './playwright-operations.ts'
import { processOperations } from './process-operations.ts'
import { replOperations } from './repl-operations.ts'
import { webMcpOperations } from './webmcp-operations.ts'

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
