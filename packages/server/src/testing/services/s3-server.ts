import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { buildApp } from 'fauxqs'
import type { S3Settings } from '../../blobs/s3-settings.ts'

/** The AWS SDK reads it from the variables `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`. */
const accessKeyId = 'berth-test'

interface Upload {
  readonly key: string
  readonly uploadId: string
  initiated: Date
}

/**
 * An S3 server on loopback, from the npm package fauxqs. The package supports neither conditional writes nor a list of
 * uploads, and accepts any key. These are added here.
 */
export class S3Server {
  /** A list of objects has at most this many in one response. */
  maxListed = 1_000
  readonly #app: FastifyInstance
  readonly #uploads = new Map<string, Upload>()
  /** The paths of objects that exist, or that a write in progress will create. */
  readonly #taken = new Set<string>()

  private constructor() {
    this.#app = buildApp({ logger: false }) as FastifyInstance
    this.#app.addHook('onRequest', async (request, reply) => {
      if (!request.headers.authorization?.includes(`Credential=${accessKeyId}/`))
        return refuse(reply, 403, 'AccessDenied')
      const query = queryOf(request)
      if (request.method === 'GET' && 'uploads' in query) return this.#listUploads(request, reply)
      if ('list-type' in query) query['max-keys'] = String(this.maxListed)
      return undefined
    })
    // Nothing else runs between this hook and the write itself.
    this.#app.addHook('preHandler', (request, reply, done) => {
      if (!writesObject(request)) return done()
      const isTaken = this.#taken.has(pathOf(request))
      if (request.headers['if-none-match'] === '*' && isTaken) return void refuse(reply, 412, 'PreconditionFailed')
      this.#taken.add(pathOf(request))
      done()
    })
    this.#app.addHook('onSend', async (request, reply, payload) => {
      if (reply.statusCode < 300) this.#note(request, String(payload))
      return payload
    })
  }

  /** Also sets the credentials in the environment of this process. */
  static async open(): Promise<S3Server> {
    const server = new S3Server()
    await server.#app.listen({ port: 0, host: '127.0.0.1' })
    process.env.AWS_ACCESS_KEY_ID = accessKeyId
    process.env.AWS_SECRET_ACCESS_KEY = 'the secret of every test'
    return server
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#app.server.address() as AddressInfo).port}`
  }

  /** Creates a bucket and returns its settings. */
  async bucket(): Promise<S3Settings> {
    const bucket = `test-${randomUUID()}`
    const headers = { authorization: `Credential=${accessKeyId}/` }
    await this.#app.inject({ method: 'PUT', url: `/${bucket}`, headers })
    return { bucket, prefix: 'berth/', endpoint: this.endpoint, region: 'us-east-1', pathStyle: true }
  }

  /** Multipart uploads that were neither completed nor aborted. */
  get uploads(): readonly Upload[] {
    return [...this.#uploads.values()]
  }

  async close(): Promise<void> {
    await this.#app.close()
  }

  #note(request: FastifyRequest, payload: string): void {
    const { uploadId, ...query } = queryOf(request)
    if (request.method === 'POST' && 'uploads' in query) {
      const id = /<UploadId>(.+)<\/UploadId>/.exec(payload)?.[1] ?? ''
      const key = pathOf(request).split('/').slice(2).join('/')
      this.#uploads.set(id, { key, uploadId: id, initiated: new Date() })
    }
    if (uploadId && request.method !== 'PUT') this.#uploads.delete(uploadId)
    if (!uploadId && request.method === 'DELETE') this.#taken.delete(pathOf(request))
  }

  #listUploads(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { prefix = '' } = queryOf(request)
    const uploads = this.uploads
      .filter(({ key }) => key.startsWith(prefix))
      .map(
        ({ key, uploadId, initiated }) =>
          `<Upload><Key>${key}</Key><UploadId>${uploadId}</UploadId><Initiated>${initiated.toISOString()}</Initiated></Upload>`,
      )
    return reply
      .type('application/xml')
      .send(
        `<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${uploads.join('')}</ListMultipartUploadsResult>`,
      )
  }
}

function writesObject(request: FastifyRequest): boolean {
  const { uploadId } = queryOf(request)
  return request.method === 'PUT' ? uploadId === undefined : request.method === 'POST' && uploadId !== undefined
}

function refuse(reply: FastifyReply, status: number, code: string): FastifyReply {
  return reply.code(status).type('application/xml').send(`<Error><Code>${code}</Code></Error>`)
}

function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? ''
}

function queryOf(request: FastifyRequest): Record<string, string | undefined> {
  return request.query as Record<string, string | undefined>
}
