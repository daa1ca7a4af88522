import { createHash } from 'node:crypto'
import { DeleteObjectCommand, PutObjectCommand, S3Client, S3ServiceException } from '@aws-sdk/client-s3'
import { ExportFailure, type ExportLocation, type ExportTarget } from './export-target.ts'

const connectionTimeout = 5_000
const socketTimeout = 15_000
/** Includes the retries of the client. */
const limitMilliseconds = 30_000
const maxAttempts = 2

/**
 * Writes to buckets of S3 or of the server that the operator configures. The credentials are the operator's, found by
 * the AWS SDK.
 */
export class S3ExportTarget implements ExportTarget {
  readonly #endpoint: string | undefined

  constructor(endpoint: string | undefined) {
    this.#endpoint = endpoint
  }

  async put(place: ExportLocation, key: string, content: Buffer): Promise<void> {
    await this.#send(place, (client, abortSignal) =>
      client.send(
        new PutObjectCommand({
          Bucket: place.bucket,
          Key: key,
          Body: content,
          ContentType: 'application/gzip',
          ChecksumSHA256: createHash('sha256').update(content).digest('base64'),
          ...(place.kmsKeyId && { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: place.kmsKeyId }),
        }),
        { abortSignal },
      ),
    )
  }

  async remove(place: ExportLocation, key: string): Promise<void> {
    await this.#send(place, (client, abortSignal) =>
      client.send(new DeleteObjectCommand({ Bucket: place.bucket, Key: key }), { abortSignal }),
    )
  }

  async #send(
    { region }: ExportLocation,
    send: (client: S3Client, signal: AbortSignal) => Promise<unknown>,
  ): Promise<void> {
    const client = new S3Client({
      region,
      ...(this.#endpoint !== undefined && { endpoint: this.#endpoint, forcePathStyle: true }),
      maxAttempts,
      requestHandler: { connectionTimeout, socketTimeout },
    })
    try {
      await send(client, AbortSignal.timeout(limitMilliseconds))
    } catch (cause) {
      throw new ExportFailure(reasonOf(cause as Error), { cause })
    } finally {
      client.destroy()
    }
  }
}

/** Names and statuses only: full messages of S3 may contain request headers. */
function reasonOf(error: Error): string {
  if (error instanceof S3ServiceException && error.$metadata.httpStatusCode !== undefined) {
    return `S3 answers ${error.name} with the status ${error.$metadata.httpStatusCode}.`
  }
  if (error.name === 'CredentialsProviderError') return 'The service has no credentials for S3.'
  if (error.name === 'AbortError' || error.name === 'TimeoutError') return 'S3 did not answer in time.'
  return 'S3 cannot be reached.'
}
