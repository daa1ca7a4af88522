import { clientProgram } from './client/client-program.ts'
import { exitCodeOf } from './failure.ts'

/** The entry point of the package that is installed where no berth runs. */
try {
  await clientProgram().parseAsync()
} catch (error) {
  process.exitCode = exitCodeOf(error)
}
