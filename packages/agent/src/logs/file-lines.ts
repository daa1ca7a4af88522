import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as delay } from 'node:timers/promises'

const chunkBytes = 64 * 1024
/** A longer line is split. */
const maxLineLength = 64 * 1024
const pollMilliseconds = 250

interface FileLinesOptions {
  readonly path: string
  /** Whether to start at the end of the file and continue without end; otherwise returns the existing lines. */
  readonly isFollowed: boolean
  readonly signal: AbortSignal
}

/**
 * The lines of a growing file. A truncated file is read from its beginning, and a replaced one from the beginning of
 * the new file.
 */
export async function* fileLines({ path, isFollowed, signal }: FileLinesOptions): AsyncGenerator<string> {
  let file = await openLog(path)
  try {
    let position = isFollowed ? (await file.stat()).size : 0
    let lines = new LineSplitter()
    const buffer = Buffer.alloc(chunkBytes)
    while (!signal.aborted) {
      const { bytesRead } = await file.read(buffer, 0, chunkBytes, position)
      position += bytesRead
      yield* lines.split(buffer.subarray(0, bytesRead))
      if (bytesRead > 0) continue
      if (!isFollowed) return yield* lines.end()
      const replaced = await replacementOf(file, path)
      if (replaced) {
        await file.close()
        file = replaced
      }
      if (replaced || (await file.stat()).size < position) {
        position = 0
        lines = new LineSplitter()
      } else await delay(pollMilliseconds, undefined, { signal, ref: false }).catch(() => {})
    }
  } finally {
    await file.close()
  }
}

/** Rejects files that never end or cannot seek: pipes, devices, folders. */
async function openLog(path: string): Promise<FileHandle> {
  if (!path.startsWith('/')) throw new Error('the path is not absolute')
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new Error('it is not a regular file')
}

/** Undefined while the path still leads to the file, or to nothing. */
async function replacementOf(file: FileHandle, path: string): Promise<FileHandle | undefined> {
  const found = await openLog(path).catch(() => undefined)
  if (!found) return undefined
  const [old, current] = await Promise.all([file.stat(), found.stat()])
  if (old.ino !== current.ino || old.dev !== current.dev) return found
  await found.close()
  return undefined
}

class LineSplitter {
  readonly #decoder = new StringDecoder('utf8')
  #unfinished = ''

  split(bytes: Buffer): readonly string[] {
    const lines = `${this.#unfinished}${this.#decoder.write(bytes)}`.split('\n')
    this.#unfinished = lines.pop() ?? ''
    if (this.#unfinished.length >= maxLineLength) {
      lines.push(this.#unfinished)
      this.#unfinished = ''
    }
    return withContent(lines)
  }

  end(): readonly string[] {
    return withContent([`${this.#unfinished}${this.#decoder.end()}`])
  }
}

function withContent(lines: readonly string[]): readonly string[] {
  return lines.map((line) => line.replace(/\r$/, '')).filter((line) => line.trim() !== '')
}
