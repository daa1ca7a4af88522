import { clientProgram } from './client/client-program.ts'
import { exitCodeOf } from './failure.ts'
import { endWithReader } from './output.ts'

/** The entry point of the package that is installed where no berth runs. */
endWithReader()
try {
  await clientProgram().parseAsync()
} catch (error) {
  process.exitCode = exitCodeOf(error)
}
