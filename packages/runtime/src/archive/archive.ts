import { type Readable, Transform, Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { crc32 } from 'node:zlib'
// A maintained library that reads only the central directory and is designed for hostile archives.
import { type Entry, fromBufferPromise, openPromise, type ZipFile } from 'yauzl'
import { type ArchiveEntry, BadArchive, checkLinkTarget, checkTree, readEntry } from './archive-entry.ts'

export interface ArchiveLimits {
  readonly maxEntries: number
  /** The sum of all members. */
  readonly maxUnpackedBytes: number
}

const maxLinkTargetBytes = 4096

/**
 * A zip archive from an untrusted source. It is validated as a whole before anything is unpacked: after `open`, all
 * names are plain and unique, and no link points outside. A BadArchive gives the reason for a rejection.
 */
export class Archive implements AsyncDisposable {
  readonly entries: readonly ArchiveEntry[]
  /** The target of each link by its path. */
  readonly links: ReadonlyMap<string, string>
  readonly #zip: ZipFile
  readonly #packed: ReadonlyMap<string, Entry>

  private constructor(
    zip: ZipFile,
    packed: ReadonlyMap<string, Entry>,
    entries: readonly ArchiveEntry[],
    links: ReadonlyMap<string, string>,
  ) {
    this.#zip = zip
    this.#packed = packed
    this.entries = entries
    this.links = links
  }

  /** Opens a file by its path, or the bytes of one. */
  static async open(source: string | Buffer, limits: ArchiveLimits): Promise<Archive> {
    const opening = typeof source === 'string' ? openPromise(source, { autoClose: false }) : fromBufferPromise(source)
    const zip = await opening.catch(refuse)
    try {
      const packed = new Map<string, Entry>()
      const entries = await readEntries(zip, limits, packed)
      checkTree(entries)
      const links = new Map<string, string>()
      for (const { path, kind } of entries) {
        if (kind === 'link') links.set(path, await readLink(zip, path, packed.get(path) as Entry))
      }
      return new Archive(zip, packed, entries, links)
    } catch (error) {
      zip.close()
      throw error
    }
  }

  /** Streams the content of a file. Fails with a BadArchive when the content does not match the directory. */
  async read(path: string): Promise<Readable> {
    const entry = this.#packed.get(path)
    if (!entry) throw new Error(`the archive does not contain ${path}`)
    return openEntry(this.#zip, entry)
  }

  /** Reads every file and discards it. An archive that passes can be unpacked completely. */
  async verify(): Promise<void> {
    for (const { path, kind } of this.entries) {
      if (kind === 'file')
        await pipeline(await this.read(path), new Writable({ write: (_chunk, _encoding, done) => done() }))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#zip.close()
  }
}

async function readEntries(zip: ZipFile, limits: ArchiveLimits, packed: Map<string, Entry>): Promise<ArchiveEntry[]> {
  if (zip.entryCount > limits.maxEntries) throw new BadArchive(`it contains more than ${limits.maxEntries} files`)
  const entries: ArchiveEntry[] = []
  let unpackedBytes = 0
  try {
    for await (const packedEntry of zip.eachEntry()) {
      const entry = readEntry(packedEntry)
      if (!entry) continue
      unpackedBytes += entry.sizeBytes
      if (unpackedBytes > limits.maxUnpackedBytes) {
        throw new BadArchive(`its unpacked size is larger than ${limits.maxUnpackedBytes} bytes`)
      }
      entries.push(entry)
      if (!packed.has(entry.path)) packed.set(entry.path, packedEntry)
    }
  } catch (error) {
    refuse(error)
  }
  if (!entries.some(({ kind }) => kind === 'file')) throw new BadArchive('it contains no file')
  return entries
}

async function readLink(zip: ZipFile, path: string, entry: Entry): Promise<string> {
  if (entry.uncompressedSize > maxLinkTargetBytes) throw new BadArchive('it contains a link that is too long')
  const target = (await buffer(await openEntry(zip, entry))).toString()
  checkLinkTarget(path, target)
  return target
}

async function openEntry(zip: ZipFile, entry: Entry): Promise<Readable> {
  const content = await zip.openReadStreamPromise(entry).catch(refuse)
  const checked = checkSum(entry.crc32)
  content.on('error', (error: Error) => checked.destroy(new BadArchive(error.message, { cause: error })))
  checked.on('close', () => {
    content.unpipe(checked)
    content.destroy()
  })
  return content.pipe(checked)
}

/** yauzl verifies sizes but not checksums. */
function checkSum(expected: number): Transform {
  let sum = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      sum = crc32(chunk, sum)
      done(null, chunk)
    },
    flush(done) {
      done(sum === expected ? null : new BadArchive('its content is damaged'))
    },
  })
}

/** Errors of the library describe the archive. System errors do not, and pass unchanged. */
function refuse(error: unknown): never {
  if (error instanceof BadArchive || (error as NodeJS.ErrnoException).syscall !== undefined) throw error
  throw new BadArchive((error as Error).message, { cause: error })
}
