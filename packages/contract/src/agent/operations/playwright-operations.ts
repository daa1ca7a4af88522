import { z } from 'zod'
import { QueryBoolean } from '../../common/query.ts'
import { Timestamp } from '../../common/time.ts'
import { defineOperation } from '../operation.ts'

const tag = 'Browser Playwright'

/** The executor of calls that name none. */
export const defaultExecutor = 'default'

const ExecutorName = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, {
  error: 'must have 1 to 64 characters of A-Z, a-z, 0-9, _ and -',
})

const ExecutePlaywrightResult = z
  .object({
    success: z.boolean(),
    result: z.unknown().optional().meta({ description: 'What the code returned.' }),
    error: z.string().optional(),
    stdout: z.string().optional(),
    stderr: z
      .string()
      .optional()
      .meta({ description: 'The standard error output of the code, including the stack of its error.' }),
    tab: z
      .object({
        target_id: z.string(),
        created: z.boolean().meta({ description: 'Whether the tab was opened for this call.' }),
      })
      .optional(),
  })
  .meta({ id: 'ExecutePlaywrightResult' })
export type ExecutePlaywrightResult = z.infer<typeof ExecutePlaywrightResult>

export const executePlaywrightCode = defineOperation({
  operationId: 'executePlaywrightCode',
  method: 'POST',
  path: '/playwright/execute',
  summary: 'Run Playwright code beside the browser',
  tag,
  category: 'control',
  body: z.strictObject({
    code: z.string().meta({
      description: 'TypeScript or JavaScript: the body of an async function with page, context, browser and webmcp.',
    }),
    timeout_sec: z.int().min(1).max(300).default(60),
    executor: ExecutorName.optional().meta({ description: 'An executor with a separate process and tab.' }),
  }),
  reply: ExecutePlaywrightResult,
  status: 200,
  errors: ['executor_limit_reached'],
})

const PlaywrightExecutor = z
  .object({
    name: z.string(),
    busy: z.boolean(),
    created_at: Timestamp,
    last_used_at: Timestamp,
    target_id: z.string().optional(),
    url: z.string().optional(),
  })
  .meta({ id: 'PlaywrightExecutor' })
export type PlaywrightExecutor = z.infer<typeof PlaywrightExecutor>

export const listPlaywrightExecutors = defineOperation({
  operationId: 'listPlaywrightExecutors',
  method: 'GET',
  path: '/playwright/executors',
  summary: 'List the executors of Playwright code',
  tag,
  category: 'control',
  reply: z.object({ executors: z.array(PlaywrightExecutor) }),
  status: 200,
  errors: [],
})

export const deletePlaywrightExecutor = defineOperation({
  operationId: 'deletePlaywrightExecutor',
  method: 'DELETE',
  path: '/playwright/executors/{name}',
  summary: 'End an executor and its code',
  tag,
  category: 'control',
  params: z.object({ name: ExecutorName }),
  query: z.object({ close_tab: QueryBoolean.default(true) }),
  status: 204,
  errors: ['executor_not_found'],
})

export const playwrightOperations = [executePlaywrightCode, listPlaywrightExecutors, deletePlaywrightExecutor] as const
