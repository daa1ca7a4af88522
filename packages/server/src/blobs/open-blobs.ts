import { StartError } from '../start-error.ts'
import type { Blobs } from './blobs.ts'
import { FolderBlobs } from './folder-blobs.ts'
import type { S3Settings } from './s3-settings.ts'

/**
 * Where blobs are stored: in a folder, or in a bucket that several servers can share. A folder with a configured path
 * is shared as well.
 */
export type BlobsConfig = { readonly kind: 'folder'; readonly path?: string } | ({ readonly kind: 's3' } & S3Settings)

/** Opens the configured store. `folder` is the default. */
export function openBlobs(config: BlobsConfig, folder: string): Promise<Blobs> {
  if (config.kind === 's3') return openS3(config)
  return config.path === undefined ? FolderBlobs.open(folder) : FolderBlobs.openShared(config.path)
}

async function openS3(settings: S3Settings): Promise<Blobs> {
  // Imported on demand, because the SDK takes a quarter of a second to load.
  const { S3Blobs } = await import('./s3-blobs.ts')
  return S3Blobs.open(settings).catch((cause: Error & { $metadata?: { httpStatusCode?: number } }) => {
    const reason = refusals[cause.$metadata?.httpStatusCode ?? 0] ?? cause.message
    throw new StartError(`the bucket ${settings.bucket} of BERTH_S3_BUCKET cannot be used: ${reason}`, 69, { cause })
  })
}

/** S3 responds to this request with a status only. */
const refusals: Readonly<Record<number, string>> = {
  301: 'it is in another region than BERTH_S3_REGION says',
  400: 'the credentials or BERTH_S3_REGION are wrong',
  403: 'the credentials of AWS_ACCESS_KEY_ID, or of the role, may not use it',
  404: 'there is no such bucket',
}
