import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { promisify } from 'node:util'
import type Kernel from '@onkernel/sdk'
import { Berth } from '../../testing/berth.ts'
import { canaryPort, secrets, stunPort } from './attack-target.ts'
import { type Canary, startCanary } from './canary.ts'

const run = promisify(execFile)
const link = 'attack0'

/** Addresses that lead to the node. For machines, all but the first three are none of theirs. */
export const nodeAddresses = {
  public: ['45.5.5.5', '45.7.7.7', '45.255.255.255'],
  private: ['192.168.7.1', '172.16.0.1', '10.9.9.9', '100.127.0.1'],
  metadata: ['169.254.169.254', '169.254.170.2', '168.63.129.16'],
} as const

/** A berth whose machines are pods of a node that has all kinds of addresses, with a canary at each. */
export class PodTarget implements AsyncDisposable {
  readonly berth: Berth
  readonly client: Kernel
  readonly canary: Canary
  readonly #open: AsyncDisposableStack

  private constructor(berth: Berth, client: Kernel, canary: Canary, open: AsyncDisposableStack) {
    this.berth = berth
    this.client = client
    this.canary = canary
    this.#open = open
  }

  static async start(): Promise<PodTarget> {
    await using open = new AsyncDisposableStack()
    await run('ip', ['link', 'add', link, 'type', 'bridge'])
    open.defer(async () => void (await run('ip', ['link', 'del', link])))
    await run('ip', ['link', 'set', link, 'up'])
    for (const address of Object.values(nodeAddresses).flat()) await run('ip', ['addr', 'add', address, 'dev', link])
    const canary = open.use(await startCanary([], [`tcp:${canaryPort}`, 'tcp:80', `udp:${stunPort}`]))
    const berth = open.use(await Berth.start({ environment: { ...secrets, BERTH_STANDBY: 'off' } }))
    return new PodTarget(berth, await berth.client({ directly: '' }), canary, open.move())
  }

  /** What has reached the canary since the last call. `announce` has the machine reach it once more, as the last one. */
  async reached(announce: () => Promise<unknown>): Promise<readonly string[]> {
    const last = 'tcp 45.255.255.255 80'
    await announce()
    await this.canary.until(last)
    return this.canary.reached.splice(0).filter((line) => line !== last)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }
}

/** Runs commands in a session's machine as its caller does. */
export class CallerShell {
  readonly #client: Kernel
  readonly #sessionId: string

  constructor(client: Kernel, sessionId: string) {
    this.#client = client
    this.#sessionId = sessionId
  }

  /** The output of the command, including errors. */
  async run(command: string, ...args: readonly string[]): Promise<string> {
    const options = { command, args: [...args], timeout_sec: 60 }
    const { stdout_b64 = '', stderr_b64 = '' } = await this.#client.browsers.process.exec(this.#sessionId, options)
    return [stdout_b64, stderr_b64]
      .map((part) => Buffer.from(part, 'base64').toString())
      .join('')
      .trim()
  }

  shell(script: string): Promise<string> {
    return this.run('/bin/bash', '-c', script)
  }

  /** Runs a module in the machine's Node.js, which writes JSON. */
  async node<Result>(script: string): Promise<Result> {
    const output = await this.run('/opt/berth/node', '--input-type=module', '-e', script)
    try {
      return JSON.parse(output) as Result
    } catch (cause) {
      throw new Error(`the script wrote: ${output}`, { cause })
    }
  }
}

/** An abstract socket of the node. */
export async function listenOnNode(name: string): Promise<AsyncDisposable> {
  const server = createServer((socket) => socket.end()).listen(`\0${name}`)
  await once(server, 'listening')
  return { [Symbol.asyncDispose]: async () => void server.close() }
}
