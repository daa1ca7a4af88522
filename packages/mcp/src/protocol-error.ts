import { ErrorCode } from '@modelcontextprotocol/sdk/types.js'

const codes = { invalidParams: ErrorCode.InvalidParams, resourceNotFound: -32_002 } as const

/** An error of the protocol. The class of the library would write the code into the message as well. */
export class ProtocolError extends Error {
  readonly code: number

  constructor(kind: keyof typeof codes, message: string) {
    super(message)
    this.code = codes[kind]
  }
}
