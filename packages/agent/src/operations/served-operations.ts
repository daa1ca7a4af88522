import { servedComputer } from '../computer/served-computer.ts'
import { servedCurl } from '../curl/served-curl.ts'
import { servedFs } from '../fs/served-fs.ts'
import { servedProcesses } from '../process/served-processes.ts'
import type { OperationContext, ServedOperation } from './served-operation.ts'

/** Every operation with who serves it. What is heavy loads with its first use, not here. */
export function servedOperations(context: OperationContext): readonly ServedOperation[] {
  return [...servedComputer(context), ...servedCurl(context), ...servedFs(), ...servedProcesses(context)]
}
