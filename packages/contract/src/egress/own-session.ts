/*
 * How egress forwards a session's connection to berth's own address: over a unix socket of the server, with one line
 * before the bytes of the session. Without Zod, like the rest of the machine protocol.
 */

/** The first line of such a connection: JSON and a line feed. */
export interface OwnSessionLine {
  readonly type: 'own-session'
  /** The session of the machine, or the machine's id if it has none, as the server told egress. */
  readonly session_id: string
}

export const maxOwnSessionLineBytes = 1_024
