/*
 * How egress takes a session's connection to berth's own address back to the server: over a unix socket of the server,
 * with one line ahead of what the session sends. Without Zod, like the rest of what egress and machines say on the wire.
 */

/** The first line on such a connection: JSON and a line feed. */
export interface OwnSessionLine {
  readonly type: 'own-session'
  /** The session whose machine it comes from, as the server told egress. */
  readonly session_id: string
}

export const maxOwnSessionLineBytes = 1_024
