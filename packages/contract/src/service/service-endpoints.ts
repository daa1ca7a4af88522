import { z } from 'zod'
import { defineEndpoint } from '../endpoint.ts'

const tag = 'Service'

const ComponentStatus = z.enum([
  'operational',
  'degraded_performance',
  'partial_outage',
  'full_outage',
  'maintenance',
  'unknown',
])

export const getHealth = defineEndpoint({
  operationId: 'getHealth',
  method: 'GET',
  path: '/health',
  summary: 'Check whether this server can serve sessions',
  description: 'Responds with 200 while the process runs. `status` reports whether its parts do.',
  tag,
  access: 'public',
  reply: z
    .object({
      status: z.enum(['ok', 'degraded']),
      version: z.string(),
      database: z.enum(['ok', 'unreachable']),
      driver: z.enum(['ok', 'unavailable']),
      egress: z.enum(['ok', 'unreachable']),
    })
    .meta({ id: 'Health' }),
  status: 200,
  errors: [],
})

export const getStatus = defineEndpoint({
  operationId: 'getStatus',
  method: 'GET',
  path: '/status',
  summary: 'State of the service, by component',
  tag,
  access: 'public',
  reply: z
    .object({
      status: ComponentStatus,
      groups: z.array(
        z.object({
          name: z.string(),
          status: ComponentStatus,
          components: z.array(z.object({ name: z.string(), status: ComponentStatus })),
        }),
      ),
    })
    .meta({ id: 'ServiceStatus' }),
  status: 200,
  errors: [],
})
