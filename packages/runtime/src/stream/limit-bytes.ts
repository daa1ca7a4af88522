import { Transform } from 'node:stream'

/** Passes bytes on, and fails with the message when there are more of them. */
export function limitBytes(maxBytes: number, message: string): Transform {
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes > maxBytes) done(new Error(message))
      else done(null, chunk)
    },
  })
}
