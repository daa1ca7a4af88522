import { z } from 'zod'
import { nameOf } from '../common/text.ts'
import { Timestamp } from '../common/time.ts'

const maxNameLength = 255

/** A name is used in paths, so it must be valid as one path segment. */
export const ProjectName = nameOf(maxNameLength)
  .refine((name) => !/[/%]/.test(name), { error: 'must not have the characters / and %' })
  .refine((name) => !/^\.\.?$/.test(name), { error: 'must not be . or ..' })

export const ProjectStatus = z.enum(['active', 'archived'])

export const Project = z
  .object({
    id: z.string(),
    name: z.string(),
    status: ProjectStatus,
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Project' })
export type Project = z.infer<typeof Project>

/** Zero removes a limit. Null leaves it unchanged. */
const LimitChange = z.int().min(0).max(1_000_000).nullish()

export const ProjectLimits = z
  .object({
    max_concurrent_sessions: z.int().nullable().meta({ description: 'Null: the project has no limit of its own.' }),
    max_concurrent_invocations: z.int().nullable(),
    max_pooled_sessions: z.null().meta({ deprecated: true, description: 'Always null.' }),
  })
  .meta({ id: 'ProjectLimits' })
export type ProjectLimits = z.infer<typeof ProjectLimits>

export const ProjectLimitsUpdate = z.object({
  max_concurrent_sessions: LimitChange.meta({
    description: 'Limit of concurrent sessions. 0 removes it. Absent or null leaves it unchanged.',
  }),
  max_concurrent_invocations: LimitChange,
  max_pooled_sessions: z
    .int()
    .nullish()
    .refine((value) => value === undefined || value === null, {
      error: 'must not be set: sessions of pools count as max_concurrent_sessions',
    })
    .meta({ deprecated: true }),
})
export type ProjectLimitsUpdate = z.output<typeof ProjectLimitsUpdate>
