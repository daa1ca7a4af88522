import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

/** An archive with the manifest of an empty extension. */
const archive = Buffer.from(
  'UEsDBBQAAAgIAPwmfV2snAh4MgAAADcAAAANAAAAbWFuaWZlc3QuanNvbqtWyk3My0xLLS6JL0stKs7Mz1OyMtZRykvMTVWyUipKzUhNLCpOzFHSUYJLKxkq1QIAUEsBAj8DFAAACAgA/CZ9XaycCHgyAAAANwAAAA0ACQAAAAAAAAAAALSBAAAAAG1hbmlmZXN0Lmpzb25VVAUAA12wC2tQSwUGAAAAAAEAAQBEAAAAXQAAAAAA',
  'base64',
)
const boundary = 'rehearsal'
const part = `--${boundary}\r\ncontent-disposition: form-data; name="extensions[0]`

/** A request as a client would send it. */
export function rehearsalUpload(): IncomingMessage {
  const body = Readable.from([
    Buffer.from(`${part}[name]"\r\n\r\nrehearsal\r\n${part}[zip_file]"; filename="0.zip"\r\n\r\n`),
    archive,
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ])
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
  return Object.assign(body, { headers }) as unknown as IncomingMessage
}
