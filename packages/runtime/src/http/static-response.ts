import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

const compress = promisify(gzip)

/**
 * A response that is the same for everyone. All requests share one buffer, compressed once, so that clients that do not
 * read their responses use no memory.
 */
export class StaticResponse {
  readonly #type: string
  readonly #plain: Buffer
  readonly #etag: string
  readonly #cacheControl: string
  #compressed: Promise<Buffer> | undefined

  constructor(type: string, content: Buffer, cacheControl = 'no-cache') {
    this.#cacheControl = cacheControl
    this.#type = type
    this.#plain = content
    this.#etag = createHash('sha256').update(content).digest('base64url')
  }

  async send(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const isCompressed = acceptsGzip(request.headers['accept-encoding'])
    const etag = `"${this.#etag}${isCompressed ? '-gzip' : ''}"`
    reply.headers({ etag, vary: 'accept-encoding', 'cache-control': this.#cacheControl }).type(this.#type)
    if (request.headers['if-none-match'] === etag) return reply.code(304).send()
    if (!isCompressed) return reply.send(this.#plain)
    this.#compressed ??= compress(this.#plain, { level: constants.Z_BEST_COMPRESSION })
    return reply.header('content-encoding', 'gzip').send(await this.#compressed)
  }
}

function acceptsGzip(accepted: string | string[] | undefined): boolean {
  const gzip = String(accepted ?? '')
    .split(',')
    .find((coding) => /^\s*(gzip|x-gzip)\s*(;|$)/i.test(coding))
  return gzip !== undefined && !/;\s*q=0(\.0*)?\s*$/i.test(gzip)
}
