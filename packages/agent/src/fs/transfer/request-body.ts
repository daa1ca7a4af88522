import type { IncomingMessage } from 'node:http'
import { BerthError } from '@berth/contract/errors.ts'
import { readWithin } from '@berth/runtime/http/json-body.ts'

const stallLimitMilliseconds = 30_000

/** The bytes of a body as they arrive. It may take any time, but must not stall. */
export async function* bytesOfBody(
  request: IncomingMessage,
  stallMilliseconds = stallLimitMilliseconds,
): AsyncGenerator<Uint8Array> {
  const chunks = request.iterator({ destroyOnReturn: false }) // A response still has to be sent.
  try {
    for (;;) {
      const { done, value } = await readWithin(stallMilliseconds, chunks.next().catch(brokenOff))
      if (done) return
      yield value
    }
  } finally {
    // While the iterator is open, the rest of a refused body is not read, and its sender waits.
    void chunks.return?.()
  }
}

function brokenOff(cause: unknown): never {
  throw new BerthError('bad_request', { reason: 'The body ended early.' }, { cause })
}
