import { computerOperations } from './computer-operations.ts'
import { fsOperations } from './fs-operations.ts'
import type { Operation } from './operation.ts'

/** Every operation that the agent serves, in the order of the API document. */
export const operations: readonly Operation[] = [
  ...computerOperations,
  ...fsOperations,
] as unknown as readonly Operation[]
