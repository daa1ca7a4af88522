import { z } from 'zod'
import { defineOperation } from '../operation.ts'

const ReplContent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), channel: z.enum(['write', 'stdout', 'stderr']), text: z.string() }),
  z.object({
    type: z.literal('image'),
    mime_type: z.enum(['image/png', 'image/jpeg', 'image/webp']),
    data_b64: z.string(),
  }),
])
export type ReplContent = z.infer<typeof ReplContent>

const ReplResult = z
  .object({
    success: z.boolean(),
    repl_id: z.string().meta({ description: 'Identifies the process. When it changes, earlier definitions are lost.' }),
    content: z.array(ReplContent).optional(),
    content_truncated: z.boolean().optional().meta({ description: 'Some of the output was omitted.' }),
    duration_ms: z.int().optional(),
    error: z.string().optional(),
    stack: z.string().optional(),
    repl_terminated: z
      .boolean()
      .optional()
      .meta({ description: 'The process has ended; the next call starts another.' }),
  })
  .meta({ id: 'ReplResult' })
export type ReplResult = z.infer<typeof ReplResult>

export const runRepl = defineOperation({
  operationId: 'runRepl',
  method: 'POST',
  path: '/repl',
  summary: 'Run JavaScript in the Node.js process of the session',
  tag: 'Browser REPL',
  category: 'control',
  bodyLimitBytes: 8 * 1024 * 1024,
  body: z
    .strictObject({
      code: z.string().default(''),
      reset: z.boolean().default(false).meta({ description: 'End the process first and start a new one.' }),
      timeout_sec: z.int().min(1).max(300).default(60),
    })
    .refine(({ code, reset }) => code !== '' || reset, {
      path: ['code'],
      error: 'must not be empty unless reset is true',
    }),
  reply: ReplResult,
  status: 200,
  errors: [],
})

export const replOperations = [runRepl] as const
