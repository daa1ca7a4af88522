import { z } from 'zod'
import { IdOrName } from '../common/ids.ts'
import { defineEndpoint } from '../endpoint.ts'

export const LiveView = z
  .object({
    url: z.string().meta({ description: 'A page that shows the screen of the session and accepts input.' }),
    read_only_url: z
      .string()
      .meta({ description: 'The same page without input. Its token opens nothing else of the session.' }),
    source: z.enum(['display', 'page']).meta({
      description: 'The whole display of a headful session, or the page in front of a headless one.',
    }),
  })
  .meta({ id: 'LiveView' })
export type LiveView = z.infer<typeof LiveView>

export const getLiveView = defineEndpoint({
  operationId: 'getBrowserLiveView',
  method: 'GET',
  path: '/browsers/{id_or_name}/live_view',
  summary: 'Get the addresses of a live view',
  description: 'Also of a headless session, whose record has no `browser_live_view_url`.',
  tag: 'Browsers',
  access: 'project',
  params: z.object({ id_or_name: IdOrName }),
  reply: LiveView,
  status: 200,
  errors: ['session_not_found'],
})
