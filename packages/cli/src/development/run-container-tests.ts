import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { checkoutFolder, durationText, printLine } from '../output.ts'
import { runProgram } from './run-program.ts'

const run = promisify(execFile)

const imageVariable = 'BERTH_TEST_DOCKER_IMAGE'
const containerTests = ['scripts/images']

/**
 * Runs the tests of compose.yaml and resolves with their exit code. They take the image of BERTH_TEST_DOCKER_IMAGE, or one
 * that is built here. Without Docker they are skipped with the reason.
 */
export async function testInContainer(parts: readonly string[]): Promise<number> {
  const tests = ['test', ...(parts.length > 0 ? parts : containerTests)]
  const cwd = checkoutFolder
  const berth = join(checkoutFolder, 'berth')
  const missing = await missingDocker()
  if (missing !== undefined) {
    printLine(`no container, so its tests are skipped: ${missing}`)
    return runProgram(berth, tests, { cwd })
  }
  const given = process.env[imageVariable]
  const image = given ?? 'berth-standalone:test'
  if (given === undefined) {
    const start = performance.now()
    const code = await runProgram('docker', ['compose', 'build'], { cwd, variables: { BERTH_IMAGE: image } })
    if (code !== 0) return code
    printLine(`the image took ${durationText(performance.now() - start)}`)
  }
  return runProgram(berth, tests, { cwd, variables: { [imageVariable]: image } })
}

/** Why containers cannot be run here, or nothing. */
export async function missingDocker(): Promise<string | undefined> {
  try {
    await run('docker', ['compose', 'version'])
    await run('docker', ['info'])
    return undefined
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: string }
    if (code === 'ENOENT') return 'docker is not installed'
    return stderr.trim().split('\n')[0] || 'docker does not run here'
  }
}
