/**
 * starting → active   the first page has answered
 * starting → ending   deleted before that
 * starting → (gone)   the start failed: the row is removed, nothing half-made stays
 * active → ending     deleted, timed out, or its machine died
 * ending → deleted    nothing of the machine is left
 */
export type SessionState = 'starting' | 'active' | 'ending' | 'deleted'

/** States in which a session holds its name. */
export const liveStates = ['starting', 'active'] as const satisfies readonly SessionState[]
