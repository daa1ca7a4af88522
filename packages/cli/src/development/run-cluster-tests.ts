import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { StartError } from '@berth/server/start-error.ts'
import { checkoutFolder, printLine } from '../output.ts'

const imageVariable = 'BERTH_TEST_KUBERNETES_IMAGE'
/** The chart is installed where this one is set too; cluster.sh sets the address that pods reach this host by. */
const serverImageVariable = 'BERTH_TEST_KUBERNETES_SERVER_IMAGE'
const clusterTests = ['kubernetes']

/**
 * Runs the tests that need a cluster and resolves with their exit code. The cluster of KUBECONFIG has to have the image
 * of machines already. Otherwise it builds the image and runs the tests in a cluster that ends with them.
 */
export async function testInCluster(parts: readonly string[]): Promise<number> {
  const tests = ['test', ...(parts.length > 0 ? parts : clusterTests)]
  const berth = join(checkoutFolder, 'berth')
  if (process.env.KUBECONFIG !== undefined) {
    const image = process.env[imageVariable]
    if (image === undefined) {
      throw new StartError(
        `with KUBECONFIG, set ${imageVariable} to the image of machines, which the nodes can pull`,
        64,
      )
    }
    return runProgram(berth, tests, image)
  }
  if (process.geteuid?.() !== 0) {
    throw new StartError('./berth test --kubernetes needs root to bring up a cluster, or KUBECONFIG of one', 69)
  }
  printLine('building the images: five minutes, and less on the same day')
  const code = await runProgram(join(checkoutFolder, 'scripts/images/build-images.sh'), [])
  if (code !== 0) return code
  const archive = (name: string) => ['--image', join(checkoutFolder, `dist/images/berth-${name}.tar`)]
  const cluster = join(checkoutFolder, 'scripts/kubernetes/cluster.sh')
  process.env[serverImageVariable] = 'localhost/berth-server:dev'
  const args = [...archive('machine'), ...archive('server'), berth, ...tests]
  return runProgram(cluster, args, 'localhost/berth-machine:dev')
}

async function runProgram(program: string, args: readonly string[], image?: string): Promise<number> {
  const tests = image !== undefined && { BERTH_TEST_KUBERNETES: '1', [imageVariable]: image }
  const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, ...tests } })
  const [code] = await once(child, 'exit')
  return typeof code === 'number' ? code : 1
}
