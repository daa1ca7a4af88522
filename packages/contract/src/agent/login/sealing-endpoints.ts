import { z } from 'zod'
import { defineEndpoint } from '../../endpoint.ts'
import { agentRoutes } from '../agent-routes.ts'

const tag = 'Agent'

const SealingKey = z.object({
  key_id: z.string().max(100),
  /** The public half, a key of P-256. */
  jwk: z.object({
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    x: z.string().max(100),
    y: z.string().max(100),
  }),
})
export type SealingKey = z.infer<typeof SealingKey>

/**
 * JSON values as compact JWEs for a key of the agent. So no text of the agent's process ever contains one: it decrypts
 * them into bytes, which it overwrites when they are in the page.
 */
export const Sealed = z.object({ key_id: z.string().max(100), values: z.array(z.string()) })
export type Sealed = z.infer<typeof Sealed>

/** Makes a key for one request with sealed values. */
export const makeSealingKey = defineEndpoint({
  operationId: 'makeSealingKey',
  ...agentRoutes.makeSealingKey,
  summary: 'Make a key that values are encrypted with',
  tag,
  access: 'internal',
  reply: SealingKey,
  status: 200,
  errors: [],
})
