import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Load, LoadResult } from '../../api-load.ts'
import { processorTimeDuring } from '../../processes.ts'
import type { BenchContext } from '../measurement.ts'

export const apiRateName = 'reads of a session'
const connections = 16

/** Measures how many reads of a session per second a service answers to another process with 16 connections. */
export async function measureApi({ services, figures, rounds }: BenchContext): Promise<void> {
  for (const service of services) {
    await using stack = new AsyncDisposableStack()
    const session = await service.create('headless')
    stack.defer(() => session.end())
    if (!session.read) continue
    await runLoad({ ...session.read, connections, seconds: 1 })

    const load = { ...session.read, connections, seconds: Math.min(rounds, 5) }
    const { used, result } = await processorTimeDuring(service, () => runLoad(load))
    const { requests, seconds, latencies } = result

    figures.add(service.name, apiRateName, 'requests/s', [requests / seconds])
    figures.add(service.name, `${apiRateName}: time of each`, 'ms', latencies)
    for (const [part, milliseconds] of used) {
      if (milliseconds / requests < 0.01) continue
      figures.add(service.name, `${apiRateName}: each, ${part}`, 'ms of CPU', [milliseconds / requests])
    }
  }
}

async function runLoad(load: Load): Promise<LoadResult> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../api-load.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  // Passed on standard input: arguments are visible to every user of the host, and this contains the key.
  child.stdin.end(JSON.stringify(load))
  const [output, [exitCode]] = await Promise.all([text(child.stdout), once(child, 'close')])
  if (exitCode !== 0) throw new Error(`the process that makes the requests ended with ${exitCode}`)
  return JSON.parse(output)
}
