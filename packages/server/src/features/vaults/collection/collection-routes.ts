import { BerthError } from '@berth/contract/errors.ts'
import { readWithin } from '@berth/runtime/http/json-body.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { collectionPath } from './collection-links.ts'
import { collectionPageHeaders, formPage, gonePage, storedPage, tooLongPage } from './collection-page.ts'
import type { CollectionService } from './collection-service.ts'

const maxFormBytes = 512 * 1024
const formMilliseconds = 30_000

/** The page where a person enters the values of an item. Its address grants access without a key. */
export function mountCollectionRoutes(
  app: FastifyInstance,
  { collections }: { readonly collections: CollectionService },
): void {
  const url = `${collectionPath}/:token`
  const tokenOf = (request: FastifyRequest) => (request.params as { token: string }).token

  app.get(url, async (request, reply) => {
    const form = await collections.open(tokenOf(request))
    return form ? send(reply, 200, formPage(form)) : send(reply, 410, gonePage())
  })

  app.post(url, { config: { streamsBody: true } }, async (request, reply) => {
    const entered = await readWithin(formMilliseconds, readForm(request))
    if (!entered) return send(reply, 413, tooLongPage())
    const submission = await collections.submit(tokenOf(request), entered)
    switch (submission.outcome) {
      case 'stored':
        return send(reply, 200, storedPage())
      case 'gone':
        return send(reply, 410, gonePage())
      case 'refused':
        return send(reply, 400, formPage(submission.form, submission.faults))
    }
  })
}

function send(reply: FastifyReply, status: number, html: string): FastifyReply {
  return reply.code(status).headers(collectionPageHeaders).send(html)
}

/** Undefined if it is too long. The rest is read and discarded, so that the client receives the response. */
async function readForm({ raw, headers }: FastifyRequest): Promise<ReadonlyMap<string, string> | undefined> {
  const type = String(headers['content-type'] ?? '').split(';', 1)[0]
  if (type?.trim().toLowerCase() !== 'application/x-www-form-urlencoded') {
    throw new BerthError('unsupported_media_type', { reason: 'The body must be a form.' })
  }
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length <= maxFormBytes) chunks.push(chunk)
  }
  if (length > maxFormBytes) return undefined
  return new Map(new URLSearchParams(Buffer.concat(chunks).toString()))
}
