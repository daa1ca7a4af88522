import { z } from 'zod'
import { maxItemFields } from './item-field.ts'
import { VaultItem } from './vault-item.ts'

const maxUrlLength = 8192
const maxSelectorLength = 4096
const maxInputBytes = 64 * 1024
const maxFillMilliseconds = 30_000

const BrowserId = z.string().min(1).max(255).meta({ description: 'The session id.' })
const FieldName = z.string().min(1).max(64)

export const FillRequest = z.strictObject({
  type: z.literal('fill'),
  browser_id: BrowserId,
  fields: z
    .array(
      z.strictObject({
        field: FieldName,
        selector: z.string().min(1).max(maxSelectorLength).meta({ description: 'CSS. Must match one element.' }),
        format: z.enum(['MM/YY', 'MM/YYYY']).optional(),
      }),
    )
    .min(1)
    .max(maxItemFields),
  page_url: z
    .string()
    .min(1)
    .max(maxUrlLength)
    .optional()
    .meta({ description: 'The whole URL of the page. Without it, the browser must have one page open.' }),
  timeout_ms: z.int().min(1).max(maxFillMilliseconds).default(10_000),
})
export type FillRequest = z.output<typeof FillRequest>

export const WebMcpRequest = z.strictObject({
  type: z.literal('webmcp_invoke'),
  browser_id: BrowserId,
  tool_ref: z.string().min(1).max(128),
  page_url: z.string().min(1).max(maxUrlLength),
  input: z
    .record(z.string(), z.json())
    .refine((input) => new TextEncoder().encode(JSON.stringify(input)).length <= maxInputBytes, {
      error: `must have at most ${maxInputBytes} bytes of JSON`,
    })
    .meta({ override: { type: 'object', additionalProperties: true } }),
  bindings: z
    .array(
      z.strictObject({
        field: FieldName,
        input_path: z
          .string()
          .max(1024)
          .regex(/^(\/([^~/]|~[01])*)+$/, { error: 'must be a JSON pointer such as /user/password' })
          .meta({ description: 'A JSON pointer to a null in the input, which the value replaces.' }),
        format: z.string().max(16).optional(),
      }),
    )
    .min(1)
    .max(maxItemFields),
  timeout_sec: z.int().min(1).max(120).default(60),
})
export type WebMcpRequest = z.output<typeof WebMcpRequest>

/** Operations of items that berth does not support: no item lists them. */
const OtherOperation = z.looseObject({
  type: z.enum([
    ...(['authorize', 'restart_verification', 'confirm_transaction', 'prepare_checkout'] as const),
    ...(['arm_passkey', 'register_passkey', 'disarm_passkey'] as const),
    ...(['1pw_create_access_request', '1pw_access_request_status', '1pw_fill', '1pw_recover'] as const),
    '1pw_update_access_token',
  ]),
})

export const VaultItemOperation = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('collect') }),
    FillRequest,
    WebMcpRequest,
    OtherOperation,
  ])
  .meta({ id: 'VaultItemOperation' })
export type VaultItemOperation = z.output<typeof VaultItemOperation>

export const FillErrorCode = z.enum([
  'target_changed',
  'element_not_found',
  'ambiguous_selector',
  'element_not_editable',
  'option_not_found',
  'timeout',
  'execution_failed',
])
export type FillErrorCode = z.infer<typeof FillErrorCode>

export const FilledField = z.object({
  index: z.int(),
  status: z.enum(['filled', 'failed', 'not_attempted', 'unknown']),
  error_code: FillErrorCode.optional(),
})
export type FilledField = z.infer<typeof FilledField>

export const FillResult = z
  .object({
    type: z.literal('fill'),
    status: z.enum(['completed', 'failed', 'unknown']),
    fields: z.array(FilledField),
  })
  .meta({ id: 'VaultFillResult' })
export type FillResult = z.infer<typeof FillResult>

export const WebMcpResult = z
  .object({
    type: z.literal('webmcp_invoke'),
    status: z.enum(['completed', 'canceled', 'error', 'awaiting_submission', 'unknown']),
    output: z.unknown().optional(),
    error_text: z.string().optional(),
    invocation_id: z.string().optional(),
  })
  .meta({ id: 'VaultWebMcpResult' })
export type WebMcpResult = z.infer<typeof WebMcpResult>

export const VaultItemOperationResult = z.union([VaultItem, FillResult, WebMcpResult])
