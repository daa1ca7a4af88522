import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import { limitBytes } from '@berth/runtime/stream/limit-bytes.ts'

/*
 * Uses the machine's tar, which every Debian has: it packs a thousand small files in a tenth of the time that
 * JavaScript needs, in parallel with the compression, and leaves the agent free.
 */

/** The only folder in a profile. Everything beside it belongs to the machine: metrics, crashes, locks, the screen. */
export const stateFolder = 'Default'

/** Far more than a browser stores for a person; otherwise a small archive could fill the disk. */
const maxUnpackedBytes = 4 * 1024 ** 3

/** Each chunk costs several turns of the agent and of tar. Node.js would create four times as many. */
const pieceBytes = 64 * 1024

/** What Chromium recreates by itself, or what is valid for only one machine or one run. */
const excludedFiles = [
  // Caches of the network, compiled code and the GPU. CacheStorage of pages is state, not a cache.
  ...['Cache', 'Code Cache', 'GPUCache', 'DawnGraphiteCache', 'DawnWebGPUCache', 'DawnCache'],
  ...['ShaderCache', 'GrShaderCache', 'GraphiteDawnCache', 'Shared Dictionary', 'AutofillAiModelCache'],
  // Unfinished work of the run: parts of large page values, reports that were not sent.
  ...['blob_storage', 'SCT Auditing Pending Reports', 'Download Service'],
  // Usage metrics, and downloaded models.
  ...['Segmentation Platform', 'optimization_guide_*', 'BrowserMetrics*', 'Site Characteristics Database'],
  // Keys of the machine.
  'ClientCertificates',
].map((name) => `${stateFolder}/${name}`)

/** In the databases: locks and logs. */
const excludedNames = ['LOCK', 'LOG', 'LOG.old', 'Singleton*']

/**
 * The state in the user data folder of a browser that has ended. The stream fails if the state cannot be read
 * completely.
 */
export function packProfile(userDataFolder: string): Readable {
  const excludes = [
    '--anchored',
    ...excludedFiles.map((pattern) => `--exclude=${pattern}`),
    '--no-anchored',
    ...excludedNames.map((pattern) => `--exclude=${pattern}`),
  ]
  const args = ['--create', '--sort=name', ...excludes, '--directory', userDataFolder, stateFolder]
  const tar = spawn('tar', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const failure = failureOf(tar)
  const whole = async function* (): AsyncGenerator<Uint8Array> {
    try {
      yield* tar.stdout
      const problem = await failure
      if (problem) throw problem
    } finally {
      tar.kill('SIGKILL') // Stops packing when the reader leaves.
    }
  }
  const compress = createZstdCompress()
  pipeline(Readable.from(whole(), { objectMode: false }), compress).catch(() => {}) // Its reader handles the error.
  return compress
}

/**
 * Unpacks an archive into an empty folder. Rejects if it is incomplete, too large, or contains no state; unread data
 * then stays in the stream.
 */
export async function unpackProfile(archive: Readable, folder: string): Promise<void> {
  const args = ['--extract', '--directory', folder, stateFolder]
  const tar = spawn('tar', args, { stdio: ['pipe', 'ignore', 'pipe'] })
  const failure = failureOf(tar)
  const limit = limitBytes(maxUnpackedBytes, `the archive holds more than ${maxUnpackedBytes} bytes`)
  try {
    await pipeline(
      Readable.from(piecesOf(archive), { objectMode: false }),
      createZstdDecompress({ chunkSize: pieceBytes }),
      limit,
      inputOf(tar.stdin),
    )
  } catch (error) {
    tar.kill('SIGKILL')
    throw error
  }
  const problem = await failure
  if (problem) throw problem
}

/** Packs and unpacks an empty state, then removes both: the first time takes several times as long. */
export async function rehearseProfile(runFolder: string): Promise<void> {
  await mkdir(runFolder, { recursive: true })
  const folder = await mkdtemp(join(runFolder, 'rehearsal-'))
  try {
    const [from, to] = [join(folder, 'from'), join(folder, 'to')]
    await mkdir(join(from, stateFolder), { recursive: true })
    await mkdir(to)
    await writeFile(join(from, stateFolder, 'state'), new Uint8Array(4 * pieceBytes))
    await unpackProfile(packProfile(from), to)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Yields the chunks, because a pipeline would destroy the stream itself and its connection. */
async function* piecesOf(archive: Readable): AsyncGenerator<Uint8Array> {
  for await (const piece of archive.iterator({ destroyOnReturn: false })) yield piece
}

/** Consumes everything, also after tar has closed its input at the end marker, before the zeros that follow. */
function inputOf(stdin: Writable): Writable {
  stdin.on('error', () => {}) // Its exit code tells whether it has read enough.
  return new Writable({
    write: (chunk, _encoding, done) => void stdin.write(chunk, () => done()),
    final: (done) => {
      stdin.end() // If the input is already closed, no callback would follow.
      done()
    },
  })
}

const fileHasChanged = 1

/** Never rejects. A file that another program of the session has changed meanwhile is not an error. */
async function failureOf(tar: ReturnType<typeof spawn>): Promise<Error | undefined> {
  let words = ''
  tar.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    words = `${words}${chunk}`.slice(-500)
  })
  try {
    const [code, signal] = (await once(tar, 'close')) as [number | null, NodeJS.Signals | null]
    if (code === 0 || code === fileHasChanged) return undefined
    return new Error(`tar ended with ${code ?? signal}: ${words.trim()}`)
  } catch (error) {
    return error as Error
  }
}
