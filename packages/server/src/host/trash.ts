import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Removes what its arguments name. A tree that somebody else has filled may be closed to its owner, deeper than a path
 * can be told and full of names that are no text: rm goes from folder to folder and follows no link. What is closed is
 * opened only when it has to be, which it never has for root.
 */
const removal = `
for path; do
  rm -rf -- "$path" 2>/dev/null && continue
  chmod -R --silent u+rwx -- "$path"
  rm -rf -- "$path"
done`

/**
 * Folders that are to go. A session can make hundreds of thousands of files: to discard them is one rename, and a child
 * process of low priority removes them, one folder after the other. What a stop or a crash interrupts, the next server
 * goes on with.
 */
export class Trash {
  readonly folder: string
  #removing: Promise<void> = Promise.resolve()
  #group: number | undefined
  #isClosed = false

  private constructor(folder: string) {
    this.folder = folder
  }

  /** The folder must be on the file system of what will be discarded. Does not wait for what is in it. */
  static async open(folder: string): Promise<Trash> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const trash = new Trash(folder)
    trash.#enqueue((await readdir(folder)).map((name) => join(folder, name)))
    return trash
  }

  /** Resolves when the path is free; what is not there is fine. Nothing may be at work in the folder any more. */
  async discard(path: string): Promise<void> {
    const discarded = join(this.folder, randomUUID())
    try {
      await rename(path, discarded)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      throw error
    }
    this.#enqueue([discarded])
  }

  /** Resolves when all that was discarded so far is removed. */
  async emptied(): Promise<void> {
    await this.#removing
  }

  /** Leaves the rest to the next server. */
  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#group !== undefined) endGroup(this.#group)
    await this.#removing
  }

  #enqueue(paths: readonly string[]): void {
    if (paths.length === 0) return
    // A failure, of the disk most often, leaves it to the next start: nothing else uses the folder meanwhile.
    this.#removing = this.#removing.then(() => this.#remove(paths)).catch(() => {})
  }

  async #remove(paths: readonly string[]): Promise<void> {
    if (this.#isClosed) return
    // Lower, and it would never come to an end beside machines that take all of the processor.
    const args = ['-n', '10', '/bin/sh', '-c', removal, 'berth-trash', ...paths]
    // A process group of its own: the shell's rm must end with the shell.
    const options = { cwd: '/', env: { PATH: '/usr/bin:/bin' }, stdio: 'ignore', detached: true } as const
    const child = spawn('/usr/bin/nice', args, options)
    this.#group = child.pid
    await once(child, 'exit')
    this.#group = undefined
  }
}

function endGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL')
  } catch (error) {
    // It has ended by itself a moment ago.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
