import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'

/** More than any page's messages need; a client that needs more ends this thread and not the agent. */
const maxHeapMegabytes = 512

let started = 0

/**
 * The thread in which BiDi is translated: what it costs to load comes with the first client, its work does not hold up
 * the agent's, and a fault in it ends BiDi clients alone.
 */
export class MapperThread {
  readonly socketPath: string
  /** Resolves with the reason, if there was a fault. */
  readonly ended: Promise<Error | undefined>
  readonly #terminate: () => Promise<unknown>

  private constructor(socketPath: string, ended: Promise<Error | undefined>, terminate: () => Promise<unknown>) {
    this.socketPath = socketPath
    this.ended = ended
    this.#terminate = terminate
  }

  /** Resolves when clients can connect. */
  static async start(runFolder: string): Promise<MapperThread> {
    const socketPath = join(runFolder, `bidi-${process.pid}-${++started}.sock`)
    const { Worker } = await import('node:worker_threads')
    const worker = new Worker(besideMain('bidi-thread'), {
      name: 'bidi',
      workerData: { socketPath },
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes },
    })
    const ended = new Promise<Error | undefined>((resolve) => {
      worker.on('error', resolve)
      worker.on('exit', () => resolve(undefined))
    }).finally(() => rm(socketPath, { force: true }))
    const isListening = once(worker, 'message').then(() => true)
    const fault = await Promise.race([isListening, ended])
    if (fault !== true) throw fault ?? new Error('the BiDi thread has ended')
    return new MapperThread(socketPath, ended, () => worker.terminate())
  }

  async stop(): Promise<void> {
    await this.#terminate()
    await this.ended
  }
}

/** The thread has a file of its own beside the agent's, as source and in a machine. */
function besideMain(name: string): string {
  const [, main = ''] = process.argv
  return join(dirname(main), `${name}${extname(main)}`)
}
