/** To the gate: a CDP message, or where to connect to, or nothing, which ends the connection. */
export type ToGate =
  | string
  | { readonly open?: string; readonly targetId?: string | undefined; readonly patienceMilliseconds?: number }

/** From the gate: a CDP message, or what has become of the connection. */
export type FromGate = string | { readonly event: 'opened' | 'closed' }
