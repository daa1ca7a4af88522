/** Where an S3 bucket is, and how it is spoken to. */
export interface S3Settings {
  readonly bucket: string
  /** What the keys of all blobs begin with. */
  readonly prefix: string
  /** Absent: AWS itself. */
  readonly endpoint: string | undefined
  readonly region: string
  /** Whether the bucket stands in the path of addresses and not in their host name. */
  readonly pathStyle: boolean
}
