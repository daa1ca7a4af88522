/** A failure to start that the operator can fix. Shown as one line without a stack trace. */
export class StartError extends Error {
  override readonly name = 'StartError'
  readonly exitCode: number

  /**
   * Exit codes follow sysexits: 64 wrong usage, 69 something required is unavailable, 73 a folder cannot be written, 75
   * in use.
   */
  constructor(message: string, exitCode: 64 | 69 | 73 | 75, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}
