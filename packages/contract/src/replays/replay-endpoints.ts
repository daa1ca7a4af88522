import { z } from 'zod'
import { IdOrName } from '../common/ids.ts'
import { defineEndpoint } from '../endpoint.ts'
import { BrowserReplay, ReplayRequest } from './replay.ts'

const tag = 'Browser Replays'
const OneBrowser = z.object({ id_or_name: IdOrName })
const OneReplay = OneBrowser.extend({ replay_id: z.string().min(1).max(255) })

export const startReplay = defineEndpoint({
  operationId: 'startReplay',
  method: 'POST',
  path: '/browsers/{id_or_name}/replays',
  summary: 'Start a recording',
  description: 'Responds when the first frame is recorded. Several recordings of a session may run at once.',
  tag,
  access: 'project',
  params: OneBrowser,
  body: ReplayRequest.prefault({}),
  reply: BrowserReplay,
  status: 201,
  errors: [
    'session_not_found',
    'session_unreachable',
    'field_not_supported',
    'replay_limit_reached',
    'replay_start_failed',
  ],
})

export const listReplays = defineEndpoint({
  operationId: 'listReplays',
  method: 'GET',
  path: '/browsers/{id_or_name}/replays',
  summary: 'List the recordings of a session',
  description: 'Oldest first. A session that has ended is found by its id.',
  tag,
  access: 'project',
  params: OneBrowser,
  reply: z.array(BrowserReplay),
  status: 200,
  errors: ['session_not_found', 'session_unreachable'],
})

export const downloadReplay = defineEndpoint({
  operationId: 'downloadReplay',
  method: 'GET',
  path: '/browsers/{id_or_name}/replays/{replay_id}',
  summary: 'Download a recording',
  description: 'Supports one byte range (`Range`). A session that has ended is found by its id.',
  tag,
  access: 'project',
  params: OneReplay,
  replyType: 'video/mp4',
  status: 200,
  otherSuccesses: {
    202: 'While the recording runs; without a body, and with `Retry-After`.',
    206: 'The requested range.',
  },
  errors: ['session_not_found', 'session_unreachable', 'replay_not_found', 'range_not_satisfiable'],
})

export const stopReplay = defineEndpoint({
  operationId: 'stopReplay',
  method: 'POST',
  path: '/browsers/{id_or_name}/replays/{replay_id}/stop',
  summary: 'Stop a recording',
  description: 'Responds when the recording can be downloaded. Succeeds for one that has ended.',
  tag,
  access: 'project',
  params: OneReplay,
  status: 200,
  errors: ['session_not_found', 'session_unreachable', 'replay_not_found'],
})
