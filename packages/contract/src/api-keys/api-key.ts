import { z } from 'zod'
import { nameOf } from '../common/text.ts'
import { Timestamp } from '../common/time.ts'

const maxDays = 3650

export const ApiKeyName = nameOf(255)

/** Null and absent have different meanings: see each operation. */
export const DaysToExpire = z.int().min(1).max(maxDays).nullish()
export const OverlapDays = z.int().min(0).max(maxDays).nullish()

export const ApiKey = z
  .object({
    id: z.string(),
    name: z.string(),
    created_at: Timestamp,
    created_by: z
      .object({ id: z.string(), email: z.string(), name: z.string().nullable() })
      .meta({ id: 'ApiKeyCreator', description: 'The key that created it, or the organization if the operator did.' }),
    expires_at: Timestamp.nullable(),
    deleted_at: Timestamp.nullable(),
    project_id: z.string().nullable().meta({ description: 'Null: the key acts for the whole organization.' }),
    project_name: z.string().nullable(),
    masked_key: z.string(),
  })
  .meta({ id: 'ApiKey' })
export type ApiKey = z.infer<typeof ApiKey>

export const CreatedApiKey = ApiKey.extend({
  key: z.string().meta({ description: 'The key itself. It is shown only here.' }),
}).meta({ id: 'CreatedApiKey' })
export type CreatedApiKey = z.infer<typeof CreatedApiKey>
