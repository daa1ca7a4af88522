import { z } from 'zod'
import { QueryBoolean } from '../../common/query.ts'
import { defineOperation } from '../operation.ts'

const tag = 'Browser WebMCP'

const kibibyte = 1024
const maxInputBytes = 1024 * kibibyte
const maxSourceBytes = 8_000_000

const JsonObject = z.record(z.string(), z.unknown())

export const WebMcpTool = z
  .object({
    name: z.string(),
    description: z.string(),
    inputSchema: JsonObject,
    title: z.string().optional(),
    outputSchema: JsonObject.optional(),
    annotations: z
      .object({
        readOnlyHint: z.boolean(),
        destructiveHint: z.boolean(),
        idempotentHint: z.boolean(),
        openWorldHint: z.boolean(),
        consequentialHint: z.boolean(),
        untrustedContentHint: z.boolean(),
        autosubmit: z.boolean(),
      })
      .partial()
      .optional(),
  })
  .meta({ id: 'WebMcpTool' })
export type WebMcpTool = z.infer<typeof WebMcpTool>

const LiveWebMcpTool = z
  .object({
    tool_ref: z.string().meta({ description: 'Identifies this tool. Valid as long as its document.' }),
    tool: WebMcpTool,
    source: z.object({
      window_id: z.int(),
      tab_id: z.int(),
      target_id: z.string().optional(),
      page_title: z.string(),
      page_url: z.string().meta({ description: 'The URL without its fragment.' }),
      frame: z.object({ frame_id: z.string(), url: z.string() }).nullable().meta({
        description: 'The frame within the page; null for the page itself.',
      }),
      custom: z.object({ id: z.string(), namespace: z.string() }).optional(),
    }),
  })
  .meta({ id: 'LiveWebMcpTool' })
export type LiveWebMcpTool = z.infer<typeof LiveWebMcpTool>

export const listWebMcpTools = defineOperation({
  operationId: 'listWebMcpTools',
  method: 'GET',
  path: '/webmcp/tools',
  summary: 'List the tools that pages offer',
  tag,
  category: 'control',
  query: z.object({ exclude_custom: QueryBoolean.default(false) }),
  reply: z.object({ tools: z.array(LiveWebMcpTool) }),
  status: 200,
  errors: ['page_not_found'],
})

export const InvokeWebMcpTool = z.strictObject({
  tool_ref: z.string().min(1).max(128),
  input: JsonObject.optional().refine((input) => byteLength(JSON.stringify(input ?? {})) <= maxInputBytes, {
    error: `must have at most ${maxInputBytes} bytes of JSON`,
  }),
  timeout_sec: z.int().min(1).max(120).default(60),
})
export type InvokeWebMcpTool = z.infer<typeof InvokeWebMcpTool>

const WebMcpInvocation = z
  .object({
    invocation_id: z.string(),
    status: z.enum(['completed', 'canceled', 'error', 'awaiting_submission']),
    output: z.unknown().optional(),
    error_text: z.string().optional(),
  })
  .meta({ id: 'WebMcpInvocation' })
export type WebMcpInvocation = z.infer<typeof WebMcpInvocation>

export const invokeWebMcpTool = defineOperation({
  operationId: 'invokeWebMcpTool',
  method: 'POST',
  path: '/webmcp/invoke',
  summary: 'Call a tool of a page',
  tag,
  category: 'control',
  bodyLimitBytes: maxInputBytes + 4 * kibibyte,
  body: InvokeWebMcpTool,
  dataFields: ['input'],
  reply: WebMcpInvocation,
  status: 200,
  errors: ['tool_not_found', 'page_not_answering', 'outcome_unknown'],
})

const CustomWebMcpTool = z
  .object({
    id: z.string().regex(/^ct_[a-z][a-z0-9]{23}$/),
    namespace: z.string(),
    kind: z.enum(['page', 'cdp']),
    match: z.object({ url_patterns: z.array(z.string()).min(1) }),
    tool: WebMcpTool,
  })
  .meta({ id: 'CustomWebMcpTool' })
export type CustomWebMcpTool = z.infer<typeof CustomWebMcpTool>

export const listCustomWebMcpTools = defineOperation({
  operationId: 'listCustomWebMcpTools',
  method: 'GET',
  path: '/webmcp/custom-tools',
  summary: 'List the tools that callers have added to pages',
  tag,
  category: 'control',
  reply: z.object({ tools: z.array(CustomWebMcpTool) }),
  status: 200,
  errors: [],
})

export const AddCustomWebMcpTools = z.strictObject({
  namespace: z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/, {
    error: 'must have 1 to 128 characters of A-Z, a-z, 0-9, _, . and -',
  }),
  source: z
    .string()
    .min(1)
    .refine((source) => byteLength(source) <= maxSourceBytes, { error: `must have at most ${maxSourceBytes} bytes` })
    .meta({
      description: 'A JavaScript expression that evaluates to a list of {kind, match: {url_patterns}, tool, execute}.',
    }),
  force_overwrite_namespace: z.boolean().default(false),
})
export type AddCustomWebMcpTools = z.infer<typeof AddCustomWebMcpTools>

export const addCustomWebMcpTools = defineOperation({
  operationId: 'addCustomWebMcpTools',
  method: 'POST',
  path: '/webmcp/custom-tools',
  summary: 'Add tools to the pages that match',
  tag,
  category: 'control',
  // JSON may encode a byte of the source in several bytes.
  bodyLimitBytes: 3 * maxSourceBytes,
  body: AddCustomWebMcpTools,
  reply: z.object({ tools: z.array(CustomWebMcpTool) }),
  status: 201,
  errors: ['custom_tool_name_taken'],
})

export const deleteCustomWebMcpTool = defineOperation({
  operationId: 'deleteCustomWebMcpTool',
  method: 'DELETE',
  path: '/webmcp/custom-tools/{id}',
  summary: 'Remove a custom tool',
  tag,
  category: 'control',
  params: z.object({ id: z.string() }),
  status: 204,
  errors: ['custom_tool_not_found'],
})

/** TextEncoder exists wherever the contract is loaded, unlike Node's Buffer. */
function byteLength(text: string): number {
  return new TextEncoder().encode(text).length
}

export const webMcpOperations = [
  listWebMcpTools,
  invokeWebMcpTool,
  listCustomWebMcpTools,
  addCustomWebMcpTools,
  deleteCustomWebMcpTool,
] as const
