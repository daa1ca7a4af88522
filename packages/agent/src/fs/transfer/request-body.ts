import type { IncomingMessage } from 'node:http'
import { BerthError } from '@berth/contract/errors.ts'
import { readWithin } from '@berth/runtime/http/json-body.ts'

const stallLimitMilliseconds = 30_000

/** The bytes of a body as they come. It may take as long as it likes, but not stop. */
export async function* bytesOfBody(
  request: IncomingMessage,
  stallMilliseconds = stallLimitMilliseconds,
): AsyncGenerator<Uint8Array> {
  const chunks = request.iterator({ destroyOnReturn: false }) // An answer still has to go out.
  try {
    for (;;) {
      const { done, value } = await readWithin(stallMilliseconds, chunks.next().catch(brokenOff))
      if (done) return
      yield value
    }
  } finally {
    // As long as it listens, what is left of a refused body stays where it is, and its sender waits.
    void chunks.return?.()
  }
}

function brokenOff(cause: unknown): never {
  throw new BerthError('bad_request', { reason: 'The body ended early.' }, { cause })
}
