import { z } from 'zod'
import { Timestamp } from '../common/time.ts'

/** Higher rates need a GPU: without one, drawing and encoding share the processor with the page. */
export const maxFramerateWithoutGpu = 20
export const defaultFramerate = 10

/** Why a recording ended. */
export const ReplayEndReason = z
  .enum([
    'stopped',
    'session_ended',
    'max_duration',
    'max_size',
    'viewport_changed',
    'storage_full',
    'storage_failed',
    'recorder_failed',
    'interrupted',
  ])
  .meta({ id: 'ReplayEndReason' })
export type ReplayEndReason = z.infer<typeof ReplayEndReason>

export const BrowserReplay = z
  .object({
    replay_id: z.string(),
    started_at: Timestamp.nullable(),
    finished_at: Timestamp.nullable(),
    replay_view_url: z
      .string()
      .meta({ description: 'A page with a player. It needs no API key: treat it as a secret.' }),
    end_reason: ReplayEndReason.optional().meta({ description: 'Absent while the recording runs.' }),
    expires_at: Timestamp.optional().meta({ description: 'When the recording is removed.' }),
  })
  .meta({ id: 'BrowserReplay' })
export type BrowserReplay = z.infer<typeof BrowserReplay>

export const ReplayRequest = z
  .object({
    framerate: z
      .int()
      .min(1)
      .max(60)
      .default(defaultFramerate)
      .meta({ description: 'More than 20 needs a GPU session.' }),
    max_duration_in_seconds: z
      .int()
      .min(1)
      .max(72 * 60 * 60)
      .optional()
      .meta({ description: 'The recording ends by itself after this time.' }),
    record_audio: z.literal(false, { error: 'must be false: sessions have no sound' }).default(false),
  })
  .meta({ id: 'ReplayRequest' })
export type ReplayRequest = z.infer<typeof ReplayRequest>
