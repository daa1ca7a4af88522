import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, constants, openSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants

/** Both ends of a pipe, as descriptors. */
export class Pipe {
  readonly readEnd: number
  readonly writeEnd: number

  private constructor(path: string) {
    // Non-blocking, whatever may have replaced the path; Node.js gives its children blocking descriptors.
    this.readEnd = openSync(path, O_RDONLY | O_NONBLOCK)
    try {
      this.writeEnd = openSync(path, O_WRONLY | O_NONBLOCK)
    } catch (error) {
      closeSync(this.readEnd)
      throw error
    }
  }

  /**
   * Creates pipes as a shell would. Node.js uses sockets instead of pipes, and a program cannot open /dev/stdout or
   * /dev/stderr if they are sockets. Node.js can only create named pipes, whose names are removed immediately.
   */
  static async open(count: number, folder: string): Promise<readonly Pipe[]> {
    const paths = Array.from({ length: count }, () => join(folder, `pipe-${randomUUID()}`))
    try {
      await makeNamedPipes(paths)
      return paths.map((path) => new Pipe(path))
    } finally {
      await Promise.all(paths.map((path) => rm(path, { force: true })))
    }
  }

  /** Keeps only the end to read from. */
  reader(): Socket {
    return streamOf({ fd: this.readEnd, readable: true, writable: false })
  }

  /** Keeps only the end to write to. */
  writer(): Socket {
    return streamOf({ fd: this.writeEnd, readable: false, writable: true })
  }
}

export async function makeNamedPipes(paths: readonly string[]): Promise<void> {
  await run('mkfifo', ['-m', '600', ...paths], { env: { PATH: '/usr/bin:/bin' } })
}

function streamOf(options: { fd: number; readable: boolean; writable: boolean }): Socket {
  const stream = new Socket(options)
  stream.on('error', () => {}) // The program has closed its end.
  return stream
}
