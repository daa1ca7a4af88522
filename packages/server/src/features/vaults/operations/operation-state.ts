export type VaultOperationState = 'preparing' | 'writing' | 'completed' | 'failed' | 'unknown'

/**
 * - `preparing`: nothing has left the server yet. After a crash, the operation has failed.
 * - `writing`: the values were sent to the machine. After a crash, the outcome is unknown.
 * - `completed`, `failed`, `unknown`: ended.
 */
export const operationTransitions: Readonly<Record<VaultOperationState, readonly VaultOperationState[]>> = {
  preparing: ['writing', 'failed'],
  writing: ['completed', 'failed', 'unknown'],
  completed: [],
  failed: [],
  unknown: [],
}

/** The states that may precede `next`. */
export function statesBefore(next: VaultOperationState): readonly VaultOperationState[] {
  const states = Object.keys(operationTransitions) as VaultOperationState[]
  return states.filter((state) => operationTransitions[state].includes(next))
}

/** States of operations in progress. */
export const statesUnderWay = ['preparing', 'writing'] as const satisfies readonly VaultOperationState[]
