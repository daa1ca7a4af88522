import { createHash } from 'node:crypto'
import { BerthError } from '@berth/contract/errors.ts'
import { sendBinary } from '@berth/runtime/http/mount.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ReplayTokens } from '../../../access/replay-tokens.ts'
import { readTokenQuery } from '../../../access/session-credentials.ts'
import { rangeResponse } from '../../../blobs/part-content.ts'
import type { ReplayService } from './replay-service.ts'
import type { Replay } from './replay-store.ts'

const root = '/replays'
/** The interval at which the page reloads while the recording runs. */
const refreshSeconds = 5

interface ReplayPageOptions {
  readonly replays: ReplayService
  readonly replayTokens: ReplayTokens
}

/** The page with the player. */
export function replayViewUrl(
  publicUrl: string,
  { id, token }: { readonly id: string; readonly token: string },
): string {
  return `${publicUrl}${root}/${id}/view?jwt=${token}`
}

const style = `
  html, body { margin: 0; height: 100%; background: #111; color: #ddd; font: 16px system-ui, sans-serif }
  body { display: flex; align-items: center; justify-content: center }
  video { width: 100%; height: 100%; object-fit: contain }
`
const styleHash = createHash('sha256').update(style).digest('base64')

/**
 * The page runs no scripts and loads only its recording. Any site may embed it: its content depends only on its URL.
 */
const pageHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "media-src 'self'",
    `style-src 'sha256-${styleHash}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  // The URL grants access.
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}

/** Serves recordings to people: a page for each, to which its token gives access, and the video that it plays. */
export function mountReplayPage(app: FastifyInstance, { replays, replayTokens }: ReplayPageOptions): void {
  const admit = async ({
    url,
    params,
  }: FastifyRequest): Promise<{ readonly replay: Replay; readonly token: string }> => {
    const { token = '' } = readTokenQuery(url)
    const id = await replayTokens.verify(token)
    if (id === undefined || id !== (params as { id?: string }).id) {
      throw new BerthError('unauthorized', { reason: 'jwt: is not the token of this recording.' })
    }
    return { replay: await replays.getById(id), token }
  }

  app.get(`${root}/:id/view`, async (request, reply) => {
    const { replay, token } = await admit(request)
    return reply.headers(pageHeaders).type('text/html; charset=utf-8').send(pageOf(replay, token))
  })

  app.get(`${root}/:id/video`, async (request, reply) => {
    const { replay } = await admit(request)
    const open = await replays.openById(replay.id)
    if (!open) return reply.code(202).header('retry-after', refreshSeconds).send()
    return sendBinary(reply, 'video/mp4', rangeResponse(open, request.headers))
  })
}

function pageOf({ id, finished_at }: Replay, token: string): string {
  const isOver = finished_at !== null
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width">',
    isOver ? '' : `<meta http-equiv="refresh" content="${refreshSeconds}">`,
    `<title>Recording ${id}</title><style>${style}</style></head><body>`,
    isOver
      ? `<video controls preload="metadata" src="video?jwt=${token}"></video>`
      : '<p>The recording still runs. The page plays it when it has ended.</p>',
    '</body></html>',
  ].join('')
}
