import { Agent, get } from 'node:http'
import { json } from 'node:stream/consumers'

/** The input of this process, read from standard input. */
export interface Load {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly connections: number
  readonly seconds: number
}

/** The result of this process, written to standard output. */
export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  readonly latencies: readonly number[]
}

const { url, headers, connections, seconds } = (await json(process.stdin)) as Load
const agent = new Agent({ keepAlive: true, maxSockets: connections })
const latencies: number[] = []
const start = performance.now()
const end = start + seconds * 1000
await Promise.all(Array.from({ length: connections }, requestUntilEnd))
const result: LoadResult = { requests: latencies.length, seconds: (performance.now() - start) / 1000, latencies }
agent.destroy()
process.stdout.write(JSON.stringify(result))

async function requestUntilEnd(): Promise<void> {
  while (performance.now() < end) {
    const asked = performance.now()
    await request()
    latencies.push(performance.now() - asked)
  }
}

function request(): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${url} was answered with ${response.statusCode}`))
      response.resume().on('end', resolve)
    })
    request.on('error', reject)
  })
}
