import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, suite, test } from 'node:test'
import { type EgressProcess, startEgressProcess } from '../testing/egress-process.ts'
import { type LoopbackServer, startTcpServer } from '../testing/loopback-server.ts'
import type { TestMachine } from '../testing/test-machine.ts'

const flood = new URL('../testing/flood.ts', import.meta.url).pathname
const slices = 3
const roundsOfSlice = 60
/** Shorter times are noise of a processor with other users, such as other tests. */
const leastMilliseconds = 50
const attempts = 4

/** Measures how long a neighbour waits for new connections and one response on each. */
async function timesOf(machine: TestMachine, destination: string): Promise<readonly number[]> {
  const times: number[] = []
  for (let round = 0; round < roundsOfSlice; round += 1) {
    const startedAt = performance.now()
    const connection = await machine.connect(destination)
    connection.socket.write('x')
    await once(connection.socket, 'data')
    times.push(performance.now() - startedAt)
    machine.reset(connection)
  }
  return times
}

/** The 99th percentile. */
function slowest(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length * 0.99)] ?? 0
}

suite('an attacker in one machine leaves its neighbour alone', { timeout: 600_000 }, () => {
  let server: LoopbackServer
  let egress: EgressProcess
  let neighbour: TestMachine
  before(async () => {
    server = await startTcpServer((socket) => {
      socket.on('data', (data: Buffer) => socket.write(data.subarray(0, 1))).once('end', () => socket.end())
    })
    // One worker serves both, so that they compete.
    egress = await startEgressProcess({ workers: 1 })
    await egress.setPolicy({ allow: ['127.0.0.1'], own_addresses: [] })
    neighbour = await egress.serve('neighbour')
    await timesOf(neighbour, server.authority)
  })
  after(async () => {
    await egress[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
  })

  const kinds = ['connections', 'unfinished lines', 'bytes', 'small chunks', 'lookups', 'connections that come and go']
  for (const [index, kind] of kinds.entries()) {
    test(kind, async (context) => {
      const attacker = await egress.serve(`attacker-${index}`)

      // A low priority, because the flood shares the processors with egress here. A real machine has limits of its own.
      const program = spawn('nice', ['-n', '19', process.execPath, flood, kind, attacker.socketPath])
      const ended = once(program, 'exit')
      await Promise.race([once(program.stdout, 'data'), ended])
      // A single measurement says little when all processors are busy.
      let [quiet, attacked] = [0, Number.POSITIVE_INFINITY]
      for (let attempt = 0; attempt < attempts && attacked >= 3 * Math.max(quiet, leastMilliseconds); attempt += 1) {
        const times = { quiet: [] as number[], attacked: [] as number[] }
        // Alternates, so that other load affects both measurements.
        for (let slice = 0; slice < slices; slice += 1) {
          times.attacked.push(...(await timesOf(neighbour, server.authority)))
          program.kill('SIGSTOP')
          times.quiet.push(...(await timesOf(neighbour, server.authority)))
          program.kill('SIGCONT')
        }
        ;[quiet, attacked] = [slowest(times.quiet), slowest(times.attacked)]
        context.diagnostic(`quiet ${quiet.toFixed(1)} ms, attacked ${attacked.toFixed(1)} ms`)
      }
      assert.equal(program.exitCode, null, 'it has attacked to the end')
      program.kill('SIGKILL')
      await ended

      assert.ok(
        attacked < 3 * Math.max(quiet, leastMilliseconds),
        `${attacked} ms is more than three times ${quiet} ms`,
      )
    })
  }
})
