import { makeSealingKey, type Sealed } from '@berth/contract/agent/login/sealing-endpoints.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { sealValues } from '@berth/runtime/sealing/seal-values.ts'
import type { LinkedSessions } from './linked-sessions.ts'

/** Encrypts values for one request to the session's agent, so that the agent's memory does not keep them. */
export async function sealFor(
  sessions: LinkedSessions,
  sessionId: SessionId,
  values: readonly unknown[],
): Promise<Sealed> {
  // The request has no body.
  const key = await sessions.command(sessionId, makeSealingKey, null as never, {})
  return sealValues(key, values).catch((cause: unknown) => {
    // The agent may be compromised and return an invalid key.
    throw new BerthError('session_unreachable', undefined, { cause })
  })
}
