/** The location of an S3 bucket and how to address it. */
export interface S3Settings {
  readonly bucket: string
  /** The prefix of all blob keys. */
  readonly prefix: string
  /** When absent, AWS. */
  readonly endpoint: string | undefined
  readonly region: string
  /** Whether the bucket is in the path of URLs instead of the host name. */
  readonly pathStyle: boolean
}
