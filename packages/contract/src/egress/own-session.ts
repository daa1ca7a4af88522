/*
 * How egress passes a session's connection to berth's own address on to the server: over a unix socket of the server,
 * with one line before the bytes of the session. Without Zod, like the rest of the machine protocol.
 */

/** The first line of such a connection: JSON and a line feed. */
export interface OwnSessionLine {
  readonly type: 'own-session'
  /** The session whose machine it comes from, or that machine, as the server told egress. */
  readonly session_id: string
}

export const maxOwnSessionLineBytes = 1_024
