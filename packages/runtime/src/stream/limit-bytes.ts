import { Transform } from 'node:stream'

/** Passes bytes through. Fails with the message when there are too many. */
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
