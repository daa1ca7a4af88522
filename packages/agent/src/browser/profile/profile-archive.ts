import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import { limitBytes } from '@berth/runtime/stream/limit-bytes.ts'

/*
 * By the tar of the machine, which every Debian has: it packs a thousand small files in a tenth of the time that it
 * would take here, beside the compression, and keeps the agent free.
 */

/** The one folder that travels. What lies beside it tells of the machine: metrics, crashes, locks, the screen. */
export const stateFolder = 'Default'

/** Far more than a browser keeps for a person; a small archive could else fill the disk. */
const maxUnpackedBytes = 4 * 1024 ** 3

/** Each piece takes several turns of the agent and of tar. Node.js would make them four times as many. */
const pieceBytes = 64 * 1024

/** What Chromium makes anew by itself, or what holds for one machine or one run alone. */
const leftBehind = [
  // Caches of the network, of compiled code and of the GPU. What pages keep in CacheStorage is no cache but state.
  ...['Cache', 'Code Cache', 'GPUCache', 'DawnGraphiteCache', 'DawnWebGPUCache', 'DawnCache'],
  ...['ShaderCache', 'GrShaderCache', 'GraphiteDawnCache', 'Shared Dictionary', 'AutofillAiModelCache'],
  // What is unfinished with the run: parts of large values of pages, reports that were not sent.
  ...['blob_storage', 'SCT Auditing Pending Reports', 'Download Service'],
  // Measures of use, and models that are downloaded.
  ...['Segmentation Platform', 'optimization_guide_*', 'BrowserMetrics*', 'Site Characteristics Database'],
  // Keys that the machine holds.
  'ClientCertificates',
].map((name) => `${stateFolder}/${name}`)

/** Of the databases in there: locks, and logs of what the program did. */
const leftBehindAnywhere = ['LOCK', 'LOG', 'LOG.old', 'Singleton*']

/** The state in the user data folder, of a browser that has ended. The stream fails when it could not be read whole. */
export function packProfile(userDataFolder: string): Readable {
  const excludes = [
    '--anchored',
    ...leftBehind.map((pattern) => `--exclude=${pattern}`),
    '--no-anchored',
    ...leftBehindAnywhere.map((pattern) => `--exclude=${pattern}`),
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
      tar.kill('SIGKILL') // When nobody reads on.
    }
  }
  const compress = createZstdCompress()
  pipeline(Readable.from(whole(), { objectMode: false }), compress).catch(() => {}) // Its reader sees it.
  return compress
}

/**
 * Unpacks an archive into an empty folder; rejects when it is not whole, is too large or holds no state. What it has not
 * read then is left in the stream.
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

/** Packs a state that nobody has made, unpacks it and removes both: the first time takes several times as long. */
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

/** The stream itself would be destroyed with the pipeline, and the connection that it comes from. */
async function* piecesOf(archive: Readable): AsyncGenerator<Uint8Array> {
  for await (const piece of archive.iterator({ destroyOnReturn: false })) yield piece
}

/** To the end, also when tar has closed its input: it does so at the mark of the end, before the zeros that follow. */
function inputOf(stdin: Writable): Writable {
  stdin.on('error', () => {}) // Its exit code tells whether it has read enough.
  return new Writable({
    write: (chunk, _encoding, done) => void stdin.write(chunk, () => done()),
    final: (done) => {
      stdin.end() // Of an input that is closed already, no callback would ever come.
      done()
    },
  })
}

const fileHasChanged = 1

/** Never rejects. A file that another program of the session has changed meanwhile is no failure. */
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
