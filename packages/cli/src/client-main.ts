import { clientProgram } from './client/client-program.ts'
import { exitCodeOf } from './failure.ts'
import { endWithReader } from './output.ts'

/** The entry point of the package for computers without a berth server. */
endWithReader()
try {
  await clientProgram().parseAsync()
} catch (error) {
  process.exitCode = exitCodeOf(error)
}
