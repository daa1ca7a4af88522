import { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  paginateListObjectsV2,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { BlobExists, type BlobFilter, BlobNotFound, type BlobRange, type Blobs, checkBlobName } from './blobs.ts'
import type { S3Settings } from './s3-settings.ts'

/** S3 accepts at most 10,000 parts of a stream of unknown length: 80 GB. */
const partBytes = 8 * 1024 ** 2
/** Each part in progress is held in memory for retries. */
const partsAtOnce = 2
const connectionTimeout = 5_000
const socketTimeout = 60_000

/**
 * Stores blobs as objects of an S3 bucket. The AWS SDK finds the credentials: environment variables `AWS_…`, a profile,
 * or the role of the machine. Blobs are encrypted with authentication, so checksums of transfers add nothing. Without
 * them, servers that only support older checksums work too.
 */
export class S3Blobs implements Blobs {
  readonly #client: S3Client
  readonly #bucket: string
  readonly #prefix: string

  private constructor(client: S3Client, { bucket, prefix }: S3Settings) {
    this.#client = client
    this.#bucket = bucket
    this.#prefix = prefix
  }

  /** Rejects when the bucket cannot be used with these settings. */
  static async open(settings: S3Settings): Promise<S3Blobs> {
    const { endpoint, region, pathStyle, bucket } = settings
    const client = new S3Client({
      region,
      ...(endpoint !== undefined && { endpoint }),
      forcePathStyle: pathStyle,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout, socketTimeout },
    })
    try {
      await client.send(new HeadBucketCommand({ Bucket: bucket }))
    } catch (error) {
      client.destroy()
      throw error
    }
    return new S3Blobs(client, settings)
  }

  close(): void {
    this.#client.destroy()
  }

  /** Uses parts when the content is larger than one. A failed write removes its parts. */
  async write(name: string, content: AsyncIterable<Uint8Array>): Promise<{ readonly sizeBytes: number }> {
    const key = this.#keyOf(name)
    let sizeBytes = 0
    async function* counted() {
      for await (const piece of content) {
        sizeBytes += piece.length
        yield piece
      }
    }
    const upload = new Upload({
      client: this.#client,
      params: {
        Bucket: this.#bucket,
        Key: key,
        Body: Readable.from(counted(), { objectMode: false }),
        ContentType: 'application/octet-stream',
        IfNoneMatch: '*',
      },
      partSize: partBytes,
      queueSize: partsAtOnce,
    })
    await upload.done().catch((cause: unknown) => {
      throw isTaken(cause) ? new BlobExists(name, { cause }) : cause
    })
    return { sizeBytes }
  }

  async read(name: string, range: BlobRange = { start: 0 }): Promise<Readable> {
    const object = { Bucket: this.#bucket, Key: this.#keyOf(name) }
    try {
      if (range.length === 0) {
        await this.#client.send(new HeadObjectCommand(object))
        return Readable.from([])
      }
      const Range = rangeHeader(range)
      const { Body } = await this.#client.send(new GetObjectCommand({ ...object, ...(Range && { Range }) }))
      return Body as Readable
    } catch (cause) {
      if (statusOf(cause) === 404) throw new BlobNotFound(name, { cause })
      if (statusOf(cause) === 416) return Readable.from([])
      throw cause
    }
  }

  async remove(name: string): Promise<void> {
    await this.#client.send(new DeleteObjectCommand({ Bucket: this.#bucket, Key: this.#keyOf(name) }))
  }

  async *list({ prefix = '', before }: BlobFilter): AsyncGenerator<string> {
    const pages = paginateListObjectsV2(
      { client: this.#client },
      { Bucket: this.#bucket, Prefix: `${this.#prefix}${prefix}` },
    )
    for await (const { Contents = [] } of pages) {
      for (const { Key = '', LastModified } of Contents) {
        if (LastModified && LastModified < before) yield Key.slice(this.#prefix.length)
      }
    }
  }

  async removeUnfinished(before: Date): Promise<void> {
    for await (const { Key, UploadId, Initiated } of this.#uploads()) {
      if (!Initiated || Initiated >= before) continue
      await this.#client
        .send(new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key, UploadId }))
        .catch((error) => {
          if (statusOf(error) !== 404) throw error // The upload has ended meanwhile.
        })
    }
  }

  async *#uploads() {
    let markers: Pick<ListMultipartUploadsCommandOutput, 'NextKeyMarker' | 'NextUploadIdMarker'> | undefined
    do {
      const page: ListMultipartUploadsCommandOutput = await this.#client.send(
        new ListMultipartUploadsCommand({
          Bucket: this.#bucket,
          Prefix: this.#prefix,
          KeyMarker: markers?.NextKeyMarker,
          UploadIdMarker: markers?.NextUploadIdMarker,
        }),
      )
      yield* page.Uploads ?? []
      markers = page.IsTruncated ? page : undefined
    } while (markers)
  }

  #keyOf(name: string): string {
    checkBlobName(name)
    return `${this.#prefix}${name}`
  }
}

function rangeHeader({ start, length }: BlobRange): string | undefined {
  if (length !== undefined) return `bytes=${start}-${start + length - 1}`
  return start > 0 ? `bytes=${start}-` : undefined
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined
}

/** 409: another write of the name is completing at the same moment. */
function isTaken(error: unknown): boolean {
  return statusOf(error) === 412 || (error instanceof S3ServiceException && error.name === 'ConditionalRequestConflict')
}
