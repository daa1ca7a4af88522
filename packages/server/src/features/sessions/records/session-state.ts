/**
 * starting → active   the first page has loaded
 * starting → ending   deleted before that
 * starting → (gone)   the start failed: the row is removed and nothing is left
 * active → ending     deleted, timed out, or its machine died
 * ending → deleted    nothing of the machine is left
 *
 * In a browser pool:
 * starting → idle     the first page has loaded: ready for a caller
 * idle → active       leased
 * active → returning  released for reuse
 * returning → idle    the connections of its last caller are closed
 * idle, returning → ending  not needed any more, or its machine died
 */
export type SessionState = 'starting' | 'idle' | 'active' | 'returning' | 'ending' | 'deleted'

/** States in which a session occupies its name. */
export const liveStates = ['starting', 'active'] as const satisfies readonly SessionState[]

/** States in which a browser counts as one of its pool. */
export const pooledStates = ['starting', 'idle', 'active', 'returning'] as const satisfies readonly SessionState[]

/** States in which the machine of a session runs. */
export const runningStates = ['idle', 'active', 'returning'] as const satisfies readonly SessionState[]

/** Why a session ended without a delete by its caller, or that a lease released it. */
export type SessionEndReason = 'timeout' | 'released' | 'machine_ended' | 'server_lost' | 'server_stopped'
