import type { ServerResponse } from 'node:http'
import { sendJson } from '../http/json-body.ts'

/** The WebDriver errors (§6.6) that the agent itself returns, with their HTTP status. */
const statuses = {
  'invalid argument': 400,
  'invalid session id': 404,
  'unknown command': 404,
  'unknown method': 405,
  'session not created': 500,
  'unknown error': 500,
} as const

export class WebDriverError extends Error {
  readonly error: string
  readonly status: number

  constructor(error: keyof typeof statuses, message: string)
  constructor(error: string, message: string, status: number)
  constructor(error: string, message: string, status?: number) {
    super(message)
    this.error = error
    this.status = status ?? statuses[error as keyof typeof statuses]
  }
}

export function sendWebDriverError(response: ServerResponse, { error, message, status }: WebDriverError): void {
  sendJson(response, status, { value: { error, message, stacktrace: '' } })
}
