import type { ExportLocation, ExportTarget } from './export-target.ts'

/** The permitted buckets and their server. */
export interface AuditExportConfig {
  readonly buckets: readonly string[]
  /** The address of a server other than AWS. */
  readonly endpoint: string | undefined
}

/** Loads the S3 SDK on first use: loading takes a quarter of a second, and most servers never need it. */
export class LazyS3Target implements ExportTarget {
  readonly #endpoint: string | undefined

  constructor(endpoint: string | undefined) {
    this.#endpoint = endpoint
  }

  async put(place: ExportLocation, key: string, content: Buffer): Promise<void> {
    await (await this.#load()).put(place, key, content)
  }

  async remove(place: ExportLocation, key: string): Promise<void> {
    await (await this.#load()).remove(place, key)
  }

  async #load(): Promise<ExportTarget> {
    const { S3ExportTarget } = await import('./s3-export-target.ts')
    return new S3ExportTarget(this.#endpoint)
  }
}
