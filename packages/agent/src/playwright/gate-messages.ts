/** To the gate: a CDP message, or the address to connect to, or nothing, which ends the connection. */
export type ToGate =
  | string
  | { readonly open?: string; readonly targetId?: string | undefined; readonly tabLimitMilliseconds?: number }

/** From the gate: a CDP message, or a change of the connection's state. */
export type FromGate = string | { readonly event: 'opened' | 'closed' }
