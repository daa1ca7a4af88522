import { z } from 'zod'
import { defineEndpoint } from '../../endpoint.ts'
import { agentRoutes } from '../agent-routes.ts'

const tag = 'Agent'

const SealingKey = z.object({
  key_id: z.string().max(100),
  /** The public key, on the curve P-256. */
  jwk: z.object({
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    x: z.string().max(100),
    y: z.string().max(100),
  }),
})
export type SealingKey = z.infer<typeof SealingKey>

/**
 * JSON values, encrypted as compact JWEs for a key of the agent. No string in the agent's process contains a value: the
 * agent decrypts them to bytes and overwrites these when the page has them.
 */
export const Sealed = z.object({ key_id: z.string().max(100), values: z.array(z.string()) })
export type Sealed = z.infer<typeof Sealed>

/** Creates a key for one request with encrypted values. */
export const makeSealingKey = defineEndpoint({
  operationId: 'makeSealingKey',
  ...agentRoutes.makeSealingKey,
  summary: 'Create a key to encrypt values with',
  tag,
  access: 'internal',
  reply: SealingKey,
  status: 200,
  errors: [],
})
