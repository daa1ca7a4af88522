import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node'
import { Berth } from '../../e2e/testing/berth.ts'
import { SharedBerths } from '../../e2e/testing/shared-berths.ts'
import { Figures } from '../figures.ts'
import { ApiServerLoad } from './api-server-load.ts'
import { startFakeNodes } from './fake-nodes.ts'
import { ProcessorTime } from './processor-time.ts'
import { WatchLag } from './watch-lag.ts'

/*
 * Many sessions on one server, in pods of simulated nodes: `scripts/kubernetes/cluster.sh node bench/scale/run-scale.ts
 * --sessions 1000 --rate 20`. Everything except the containers is real: the server, PostgreSQL, the API server with
 * etcd, the scheduler, and the connections to each machine. docs/scaling.md contains the results.
 */

const run = promisify(execFile)
const namespace = 'berth-scale'
// Limited by a node's processors.
const podsPerNode = 200
/** So that a drain leaves some. */
const fewestNodes = 3
/** With four connections each, far from the 20,000 files that a process may usually open. */
const sessionsPerProcess = 3_500
const mebibyte = 1024 ** 2
const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '1000' },
    rate: { type: 'string', default: '20' },
    reserve: { type: 'string', default: '0' },
    'reserve-rate': { type: 'string', default: '100' },
    servers: { type: 'string', default: '1' },
  },
})
const [sessions, reserve, servers] = [Number(values.sessions), Number(values.reserve), Number(values.servers)]
const figures = new Figures()
const connections = new Agent({ keepAlive: true, maxSockets: 500 })

const config = new KubeConfig()
config.loadFromDefault()
const api = config.makeApiClient(CoreV1Api)
await using stack = new AsyncDisposableStack()
await api.createNamespace({ body: { metadata: { name: namespace } } })
stack.defer(async () => void (await api.deleteNamespace({ name: namespace })))
stack.use(await startFakeNodes(Math.max(fewestNodes, Math.ceil((sessions * 1.5) / podsPerNode))))
for (let count = 0; count < sessions; count += sessionsPerProcess) stack.use(await startFakePods())
const berths = await startServers()
let turn = 0
const load = new ApiServerLoad(config)
const watch = stack.use(await WatchLag.open(config, namespace))
const idle = await memoryOfServers()
say(`${servers} servers take ${idle} MiB without sessions`)

// Prints the measurements even if a later step fails.
stack.defer(print)
// Creates come first: the reserve starts no machines meanwhile.
const created = sessions > reserve ? await createAll(sessions - reserve, Number(values.rate), 'creates') : []
if (reserve > 0) {
  const before = await startPhase()
  await untilReserveIsFull()
  await endPhase('starts of the reserve', before, reserve)
  created.push(...(await createAll(reserve, Number(values['reserve-rate']), 'creates from the reserve')))
}
const full = await memoryOfServers()
figures.add('berth', `memory of ${servers} servers`, 'MiB', [full])
figures.add('berth', 'memory of a server for a session', 'MiB', [(full - idle) / created.length])
say(`${created.length} sessions, ${full} MiB`)
// Its refill would slow down what follows.
if (reserve > 0) await untilReserveIsFull()
await readAll(created)
await idleLoad()
// A drained node may have machines of the reserve, which are no sessions.
await deleteAll(reserve === 0 ? await drainNode(created) : created)
await reapAll()

/** Waits until all machines of the reserve are ready, so that creates claim them. */
async function untilReserveIsFull(): Promise<void> {
  const begin = performance.now()
  for (let ready = 0; ready < reserve; await delay(1_000)) {
    ready = sum(await Promise.all(berths.map(readReserve)))
    if (performance.now() - begin > reserve * 1_000) throw new Error(`the reserve has ${ready} machines`)
  }
  say(`${reserve} machines of the reserve after ${((performance.now() - begin) / 1_000).toFixed(0)} s`)
}

async function readReserve(berth: Berth): Promise<number> {
  const metrics = await (await berth.request('/metrics')).text()
  return Number(/^berth_reserve_machines\{.*"headless"\} (\d+)$/m.exec(metrics)?.[1])
}

/** Creates sessions at the given rate, whether or not earlier creates have been answered. */
async function createAll(count: number, rate: number, what: string): Promise<string[]> {
  const before = await startPhase()
  const hasEnded = new AbortController()
  const lags = watch.measure(hasEnded.signal)
  const begin = performance.now()
  const latencies: number[] = []
  const refused = new Map<string, number>()
  const ids: string[] = []
  const calls: Promise<void>[] = []
  for (let number = 0; number < count; number++) {
    await delay(Math.max(0, begin + (number * 1_000) / rate - performance.now()))
    calls.push(
      timed(latencies, () => call('POST', '/browsers', { headless: true, timeout_seconds: 3_600 })).then(
        (body) => void ids.push(body.session_id as string),
        (error: Error) => void refused.set(error.message, (refused.get(error.message) ?? 0) + 1),
      ),
    )
  }
  await Promise.all(calls)
  const seconds = (performance.now() - begin) / 1_000
  figures.add('berth', `one of the ${what}`, 'ms', latencies)
  figures.add('berth', what, 'requests/s', [ids.length / seconds])
  for (const [message, count] of refused) figures.notes.push(`${count} creates failed: ${message}`)
  hasEnded.abort()
  figures.add('the API server', `change of a pod until its watch tells it, during ${what}`, 'ms', await lags)
  await endPhase(what, before, ids.length)
  return ids
}

async function readAll(ids: readonly string[]): Promise<void> {
  const [lists, reads, metrics]: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < 100; round++) {
    await timed(lists, () => call('GET', `/browsers?limit=100&offset=${(round * 100) % ids.length}`))
    await timed(reads, () => call('GET', `/browsers/${ids[(round * 37) % ids.length]}`))
    if (round < 10) await timed(metrics, () => call('GET', '/metrics'))
  }
  figures.add('berth', 'list of 100 sessions', 'ms', lists)
  figures.add('berth', 'read of a session', 'ms', reads)
  figures.add('berth', 'metrics', 'ms', metrics)
}

/** The cost of unused sessions. */
async function idleLoad(): Promise<void> {
  const seconds = 20
  const [before, usedBefore] = [await load.read(), await cpuSecondsOfServers()]
  await delay(seconds * 1_000)
  const used = ((await cpuSecondsOfServers()) - usedBefore) / seconds
  figures.add('berth', 'processor of all servers, a second with all sessions idle', 'ms of CPU', [used * 1_000])
  const after = await load.read()
  figures.add('the API server', 'requests, with all sessions idle', 'requests/s', [
    (after.requests - before.requests) / seconds,
  ])
}

/**
 * Drains one of the nodes. Resolves with the other sessions when those of the node have ended. Fails if others end too.
 */
async function drainNode(ids: readonly string[]): Promise<readonly string[]> {
  const { items } = await api.listNamespacedPod({ namespace })
  // The pod of the watch has no node.
  const machines = items.filter(({ spec }) => spec?.nodeName !== undefined)
  const counts = Map.groupBy(machines, ({ spec }) => spec?.nodeName)
  const sizes = [...counts.values()].map(({ length }) => length)
  say(`machines on each of ${sizes.length} nodes: ${Math.min(...sizes)} to ${Math.max(...sizes)}`)
  const [node = assert.fail('there is no machine')] = counts.keys()
  const begin = performance.now()
  await run('kubectl', ['drain', node, '--force', '--delete-emptydir-data', '--timeout=300s'])
  const remaining = await untilEnded(ids.length - (counts.get(node)?.length ?? 0))
  figures.add('berth', `end of the sessions of a drained node, ${ids.length - remaining.length} in all`, 'ms', [
    performance.now() - begin,
  ])
  return remaining
}

/** Resolves with the sessions when this many are left. */
async function untilEnded(count: number): Promise<readonly string[]> {
  for (let round = 0; round < 300; round += 1) {
    const ids = await listSessions()
    if (ids.length < count) throw new Error(`${count} sessions must be left, but there are ${ids.length}`)
    if (ids.length === count) return ids
    await delay(200)
  }
  throw new Error('sessions of a drained node have not ended')
}

async function listSessions(): Promise<readonly string[]> {
  const ids: string[] = []
  for (let offset = 0; ; offset += 100) {
    const page = (await call('GET', `/browsers?limit=100&offset=${offset}`)) as unknown as { session_id: string }[]
    ids.push(...page.map(({ session_id }) => session_id))
    if (page.length < 100) return ids
  }
}

async function deleteAll(ids: readonly string[]): Promise<void> {
  const latencies: number[] = []
  const begin = performance.now()
  const before = await startPhase()
  const left = [...ids]
  const deleteOne = async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) {
      const path = `/browsers/${id}`
      await timed(latencies, () => call('DELETE', path))
    }
  }
  await Promise.all(Array.from({ length: 32 }, deleteOne))
  figures.add('berth', 'delete, 32 at once', 'ms', latencies)
  figures.add('berth', 'deletes', 'requests/s', [ids.length / ((performance.now() - begin) / 1_000)])
  await endPhase('deletes', before, ids.length)
}

/** Many sessions whose timeout passes at the same time. */
async function reapAll(): Promise<void> {
  const count = Math.min(sessions, 200)
  const seconds = 60
  const begin = performance.now()
  let begun = 0
  const createEach = async () => {
    while (begun < count) {
      begun += 1
      // Each timeout is a little shorter than the one before, so that all end at once.
      const left = Math.ceil(seconds - (performance.now() - begin) / 1_000)
      await call('POST', '/browsers', { headless: true, timeout_seconds: Math.max(10, left) })
    }
  }
  await Promise.all(Array.from({ length: 16 }, createEach))
  const due = Math.max(begin + seconds * 1_000, performance.now() + 10_000)
  // Without a reserve, only the pod of the watch is left.
  while ((await listSessions()).length > 0 || (reserve === 0 && (await podCount()) > 1)) {
    if (performance.now() > due + 300_000) throw new Error('sessions whose time is up are still there')
    await delay(200)
  }
  figures.add('berth', `end of ${count} sessions whose time is up, after the last of them`, 'ms', [
    Math.max(0, performance.now() - due),
  ])
}

async function podCount(): Promise<number> {
  return (await api.listNamespacedPod({ namespace, limit: 2 })).items.length
}

/** Sends each request to another server. */
async function call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const berth = berths[turn++ % servers] as Berth
  const headers = { authorization: `Bearer ${berth.apiKey}`, ...(body && { 'content-type': 'application/json' }) }
  const request = httpRequest(`${berth.url}${path}`, { method, headers, agent: connections })
  request.end(body && JSON.stringify(body))
  const [response] = await once(request, 'response')
  const answer = await text(response)
  if (response.statusCode >= 400) throw new Error(`${method} ${path.split('/', 2).join('/')}: ${answer.slice(0, 200)}`)
  return response.headers['content-type']?.startsWith('application/json') ? JSON.parse(answer) : {}
}

async function timed<Value>(latencies: number[], work: () => Promise<Value>): Promise<Value> {
  const begin = performance.now()
  const value = await work()
  latencies.push(performance.now() - begin)
  return value
}

async function startPhase() {
  return { counts: await load.read(), time: await ProcessorTime.read() }
}

/** The cost of the phase per session, and which programs used the processors. */
async function endPhase(what: string, before: Awaited<ReturnType<typeof startPhase>>, count: number): Promise<void> {
  const { counts, time } = await startPhase()
  figures.add('the API server', `requests of ${what}, for each`, 'calls', [
    (counts.requests - before.counts.requests) / count,
  ])
  figures.add('the API server', `memory after ${what}`, 'MiB', [counts.memoryBytes / mebibyte])
  const verbs = counts.byVerbSince(before.counts).map(([verb, requests]) => `${verb} ${(requests / count).toFixed(1)}`)
  figures.notes.push(`${what}, requests for each by verb: ${verbs.join(', ')}`)
  const p99 = counts.p99Since(before.counts).map(([verb, seconds]) => `${verb} ${seconds} s`)
  figures.notes.push(`${what}, p99 of requests at most: ${p99.join(', ')}`)
  const shares = time.since(before.time)
  for (const [name, seconds] of shares) {
    figures.add('processor', `${name}, for each of the ${what}`, 'ms of CPU', [(seconds * 1_000) / count])
  }
  figures.notes.push(`${what}: the processors of this host were busy to ${time.percentSince(before.time).toFixed(0)} %`)
  for (const note of figures.notes.splice(0)) say(note)
}

async function startServers(): Promise<readonly Berth[]> {
  const environment = {
    // A test's server gets only the environment variables named here.
    KUBECONFIG: process.env.KUBECONFIG ?? '',
    BERTH_DRIVER: 'kubernetes',
    BERTH_KUBERNETES_NAMESPACE: namespace,
    BERTH_KUBERNETES_IMAGE: 'localhost/fake:1',
    BERTH_RESERVE: reserve > 0 ? `headless=${reserve / servers}` : 'off',
    BERTH_STANDBY: 'off',
    BERTH_RATE_LIMIT: '0',
    BERTH_MAX_SESSIONS: String(sessions * 2),
  }
  if (servers === 1) return [stack.use(await Berth.startOne({ environment }))]
  const shared = stack.use(await SharedBerths.open(Berth.startOne))
  return Array.fromAsync({ length: servers }, () => shared.start({ environment }))
}

async function memoryOfServers(): Promise<number> {
  return sum(await Promise.all(berths.map(({ pid }) => memoryOf(pid))))
}

async function cpuSecondsOfServers(): Promise<number> {
  return sum(await Promise.all(berths.map(({ pid }) => cpuSecondsOf(pid))))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

async function memoryOf(pid: number): Promise<number> {
  const [, kibibytes] = /^VmRSS:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kibibytes) / 1024)
}

async function cpuSecondsOf(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

async function startFakePods(): Promise<AsyncDisposable> {
  const child: ChildProcess = spawn(
    process.execPath,
    [join(import.meta.dirname, '../../packages/server/src/testing/machines/fake-pods.ts'), namespace],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  await once(child.stdout as NodeJS.ReadableStream, 'data')
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

function say(line: string): void {
  process.stderr.write(`scale: ${line}\n`)
}

function print(): void {
  for (const { service, name, unit, samples, p50, p99 } of figures.all) {
    const [half, most] = [p50, p99].map((value) => value.toFixed(value < 10 ? 2 : 0))
    process.stdout.write(`| ${service} | ${name} | ${half} | ${samples > 1 ? most : ''} | ${unit} | ${samples} |\n`)
  }
}
