import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'

const codes = { invalidParams: ErrorCode.InvalidParams, resourceNotFound: -32_002 } as const

/** A protocol error. The library's class would also add the code to the message. */
export class ProtocolError extends Error {
  readonly code: number

  constructor(kind: keyof typeof codes, message: string) {
    super(message)
    this.code = codes[kind]
  }
}
