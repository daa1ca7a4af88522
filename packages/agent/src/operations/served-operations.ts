import { servedComputer } from '../computer/served-computer.ts'
import { servedFs } from '../fs/served-fs.ts'
import type { OperationContext, ServedOperation } from './served-operation.ts'

/** Every operation with who serves it. What is heavy loads with its first use, not here. */
export function servedOperations(context: OperationContext): readonly ServedOperation[] {
  return [...servedComputer(context), ...servedFs()]
}
