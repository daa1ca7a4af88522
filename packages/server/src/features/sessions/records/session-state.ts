/**
 * starting → active   the first page has answered
 * starting → ending   deleted before that
 * starting → (gone)   the start failed: the row is removed, nothing half-made stays
 * active → ending     deleted, timed out, or its machine died
 * ending → deleted    nothing of the machine is left
 *
 * Of a browser pool:
 * starting → idle     the first page has answered: ready, and no caller's
 * idle → active       leased
 * active → returning  released, to be used again
 * returning → idle    its last caller has lost it
 * idle, returning → ending  not wanted any more, or its machine died
 */
export type SessionState = 'starting' | 'idle' | 'active' | 'returning' | 'ending' | 'deleted'

/** States in which a session holds its name. */
export const liveStates = ['starting', 'active'] as const satisfies readonly SessionState[]

/** States in which a browser of a pool is one of those that the pool has. */
export const pooledStates = ['starting', 'idle', 'active', 'returning'] as const satisfies readonly SessionState[]

/** States in which a session has a machine that runs. */
export const runningStates = ['idle', 'active', 'returning'] as const satisfies readonly SessionState[]

/** Why a session has ended, where no caller has asked for it, or one that leased it has released it. */
export type SessionEndReason = 'timeout' | 'released' | 'machine_ended' | 'server_lost' | 'server_stopped'
