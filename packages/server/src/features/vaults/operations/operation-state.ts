export type VaultOperationState = 'preparing' | 'writing' | 'completed' | 'failed' | 'unknown'

/**
 * - `preparing`: nothing has left the server yet. Whoever dies here leaves a failed operation.
 * - `writing`: the values were sent to the machine. Whoever dies here leaves one of which nobody knows the outcome.
 * - `completed`, `failed`, `unknown`: ended.
 */
export const operationTransitions: Readonly<Record<VaultOperationState, readonly VaultOperationState[]>> = {
  preparing: ['writing', 'failed'],
  writing: ['completed', 'failed', 'unknown'],
  completed: [],
  failed: [],
  unknown: [],
}

/** The states from which an operation may get there. */
export function statesBefore(next: VaultOperationState): readonly VaultOperationState[] {
  const states = Object.keys(operationTransitions) as VaultOperationState[]
  return states.filter((state) => operationTransitions[state].includes(next))
}

/** States of operations that somebody performs. */
export const statesUnderWay = ['preparing', 'writing'] as const satisfies readonly VaultOperationState[]
