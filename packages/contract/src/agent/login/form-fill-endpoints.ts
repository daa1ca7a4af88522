import { z } from 'zod'
import { defineEndpoint } from '../../endpoint.ts'
import { FillErrorCode, FilledField, FillResult } from '../../vaults/item-operation.ts'
import { agentRoutes } from '../agent-routes.ts'
import { Sealed } from './sealing-endpoints.ts'

const tag = 'Agent'

/**
 * Finds the one editable element for each selector in all frames of a page, and waits for the elements up to the
 * timeout. It sends no values yet: the server first checks the origins of these elements.
 */
export const findFormFields = defineEndpoint({
  operationId: 'findFormFields',
  ...agentRoutes.findFormFields,
  summary: 'Find the elements to fill in',
  tag,
  access: 'internal',
  body: z.object({
    selectors: z.array(z.string()),
    page_url: z.string().optional(),
    timeout_ms: z.int(),
  }),
  reply: z.discriminatedUnion('outcome', [
    z.object({
      outcome: z.literal('found'),
      /** Identifies these elements until the next call. */
      fill_id: z.string(),
      page_url: z.string(),
      /** The origin of each element's document, in the order of the selectors. */
      origins: z.array(z.string()),
    }),
    z.object({ outcome: z.literal('not_found'), index: z.int(), error_code: FillErrorCode }),
    z.object({ outcome: z.literal('invalid_selector'), index: z.int() }),
    z.object({ outcome: z.enum(['no_page', 'several_pages']) }),
  ]),
  status: 200,
  errors: [],
})
export type FindFormFieldsRequest = z.output<typeof findFormFields.body & {}>
export type FindFormFieldsReply = z.output<typeof findFormFields.reply & {}>

/** Writes a value into each of these elements, in order, and stops at the first failure. */
export const fillFormFields = defineEndpoint({
  operationId: 'fillFormFields',
  ...agentRoutes.fillFormFields,
  summary: 'Fill in the elements that were found',
  tag,
  access: 'internal',
  body: z.object({ fill_id: z.string(), sealed_values: Sealed, timeout_ms: z.int() }),
  reply: z.object({ status: FillResult.shape.status, fields: z.array(FilledField) }),
  status: 200,
  errors: [],
})
export type FillFormFieldsRequest = z.output<typeof fillFormFields.body & {}>
export type FillFormFieldsReply = z.output<typeof fillFormFields.reply & {}>
