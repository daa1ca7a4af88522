import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Removes its arguments. A hostile tree may deny its owner access, be nested deeper than the path limit, and have names
 * that are not text. rm walks from folder to folder and follows no link. Permissions are changed only when necessary,
 * which is never the case for root.
 */
const removal = `
for path; do
  rm -rf -- "$path" 2>/dev/null && continue
  chmod -R --silent u+rwx -- "$path"
  rm -rf -- "$path"
done`

/**
 * Folders to be removed. A session can create hundreds of thousands of files. Discarding a folder is one rename, and a
 * child process with low priority removes the folders one after another. The next server continues what a stop or a
 * crash interrupts.
 */
export class Trash {
  readonly folder: string
  #removing: Promise<void> = Promise.resolve()
  #group: number | undefined
  #isClosed = false

  private constructor(folder: string) {
    this.folder = folder
  }

  /** The folder must be on the file system of what will be discarded. Does not wait for its content to be removed. */
  static async open(folder: string): Promise<Trash> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const trash = new Trash(folder)
    trash.#enqueue((await readdir(folder)).map((name) => join(folder, name)))
    return trash
  }

  /** Resolves when the path is free. Succeeds for a missing path. No process may use the folder any more. */
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

  /** Resolves when everything that was discarded so far is removed. */
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
    // After a failure, usually of the disk, the next start tries again: nothing else uses the folder meanwhile.
    this.#removing = this.#removing.then(() => this.#remove(paths)).catch(() => {})
  }

  async #remove(paths: readonly string[]): Promise<void> {
    if (this.#isClosed) return
    // With a lower priority it would never finish while machines use all processors.
    const args = ['-n', '10', '/bin/sh', '-c', removal, 'berth-trash', ...paths]
    // Starts a process group, so that the shell's rm ends with the shell.
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
    // It has just ended by itself.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
