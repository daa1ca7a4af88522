import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { BrowserDownload } from '@berth/contract/downloads/download-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { listDownloadedFiles, readDownloadedFile } from '../../../agent-link/transfers/download-link.ts'
import type { RangedContent } from '../../../blobs/part-content.ts'
import { type ByteRange, readRange, type SealedParts } from '../../../blobs/sealed-parts.ts'
import type { ReachableMachine } from '../../../drivers/driver.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { Session } from '../records/session.ts'
import type { SessionStore } from '../records/session-store.ts'
import type { Download, DownloadPart, DownloadStore } from './download-store.ts'

const partBytes = 4 * 1024 ** 2
const maxFiles = 100
const keepLimitMilliseconds = 60_000
const removedAtOnce = 100

export interface DownloadsConfig {
  readonly retentionDays: number
  /** The limit of all kept files of one session. */
  readonly maxBytes: number
}

interface DownloadServiceOptions {
  readonly store: DownloadStore
  readonly parts: SealedParts
  readonly sessions: SessionStore
  readonly machines: SessionMachines
  readonly config: DownloadsConfig
  readonly clock: Clock
  readonly logger: Logger
}

interface SessionReference {
  readonly projectId: ProjectId
  readonly session: string
}

/** The files that pages have downloaded: in the machine while the session is active, later those that were kept. */
export class DownloadService {
  readonly #options: DownloadServiceOptions

  constructor(options: DownloadServiceOptions) {
    this.#options = options
  }

  async list(reference: SessionReference): Promise<BrowserDownload[]> {
    const { store, machines } = this.#options
    const session = await this.#session(reference)
    if (session.state !== 'active') return (await store.list(session.id)).map(downloadRecord)
    const files = await listDownloadedFiles(machines.get(session.id)).catch(unreachable)
    return files.map(({ name, size_bytes, mod_time }) => ({ name, size_bytes, downloaded_at: mod_time }))
  }

  /** The agent's response while the session is active, later the kept file. */
  async open(
    reference: SessionReference,
    name: string,
    range: string | undefined,
  ): Promise<{ readonly live: IncomingMessage } | { readonly kept: RangedContent }> {
    const { store, parts, machines } = this.#options
    const session = await this.#session(reference)
    if (session.state === 'active') {
      return { live: await readDownloadedFile(machines.get(session.id), name, { range }).catch(unreachable) }
    }
    const download = await store.find(session.id, name)
    if (!download) throw new BerthError('file_not_found', { field: 'name', path: name })
    const whole = wholeOf(download)
    const stored = await store.listParts(download)
    const read = (bytes: ByteRange) => readRange(stored, bytes, (part) => parts.read(whole, part))
    const id = createHash('sha256').update(whole.id).digest('base64url')
    return { kept: { id, sizeBytes: download.size_bytes, read } }
  }

  /**
   * Stores the downloads of a session whose caller requested it. Safe to repeat. A failure does not stop the end of the
   * session.
   */
  async keep({ id, project_id, keep_downloads }: Session): Promise<void> {
    const { machines, config, logger } = this.#options
    const machine = machines.find(id)
    if (!keep_downloads || !machine) return
    const signal = AbortSignal.timeout(keepLimitMilliseconds)
    try {
      let left = config.maxBytes
      const files = await listDownloadedFiles(machine)
      for (const { name, mod_time } of files.slice(0, maxFiles)) {
        const facts = { session_id: id, project_id, name, downloaded_at: new Date(mod_time) }
        left -= await this.#keepOne(machine, facts, { signal, maxBytes: left })
      }
    } catch (error) {
      logger.warn({ err: error, sessionId: id }, 'could not keep all downloads of a session')
    }
  }

  /** Returns the size of the file, or 0 if it exceeds the limit and is not kept. */
  async #keepOne(
    machine: ReachableMachine,
    facts: Pick<Download, 'session_id' | 'project_id' | 'name' | 'downloaded_at'>,
    { signal, maxBytes }: { readonly signal: AbortSignal; readonly maxBytes: number },
  ): Promise<number> {
    const { store, parts, config, clock } = this.#options
    const response = await readDownloadedFile(machine, facts.name, { signal })
    const stored: DownloadPart[] = []
    let sizeBytes = 0
    let pending: Buffer[] = []
    let pendingBytes = 0
    const write = async () => {
      const bytes = Buffer.concat(pending)
      const number = stored.length
      const blob = await parts.write(wholeOf(facts), number, bytes)
      stored.push({ session_id: facts.session_id, name: facts.name, number, blob, size_bytes: bytes.length })
      pending = []
      pendingBytes = 0
    }
    try {
      if (response.statusCode !== 200) throw new Error(`the agent responds with ${response.statusCode}`)
      for await (const chunk of response as AsyncIterable<Buffer>) {
        sizeBytes += chunk.length
        if (sizeBytes > maxBytes) throw new Error('the downloads exceed the limit of kept files')
        pending.push(chunk)
        pendingBytes += chunk.length
        if (pendingBytes >= partBytes) await write()
      }
      if (pendingBytes > 0) await write()
      const expiresAt = new Date(clock.now().getTime() + config.retentionDays * 86_400_000)
      await store.insert({ ...facts, size_bytes: sizeBytes, expires_at: expiresAt }, stored)
      return sizeBytes
    } catch (error) {
      response.destroy()
      for (const part of stored) await parts.remove(part)
      signal.throwIfAborted()
      this.#options.logger.warn({ err: error, sessionId: facts.session_id }, 'could not keep a download of a session')
      return 0
    }
  }

  async #session({ projectId, session: idOrName }: SessionReference): Promise<Session> {
    const session = await this.#options.sessions.find(projectId, idOrName, true)
    if (!session) throw new BerthError('session_not_found', { session: idOrName })
    return session
  }

  /** Removes expired files. */
  async expire(): Promise<void> {
    const { store, parts, clock } = this.#options
    const now = clock.now()
    for (let expired = await store.listExpired(now, removedAtOnce); expired.length > 0; ) {
      for (const download of expired) {
        for (const part of await store.listParts(download)) await parts.remove(part)
        await store.delete(download)
      }
      expired = await store.listExpired(now, removedAtOnce)
    }
  }

  listUsedBlobs(names: readonly string[]): Promise<readonly string[]> {
    return this.#options.store.listUsedBlobs(names)
  }
}

function wholeOf({ project_id, session_id, name }: Pick<Download, 'project_id' | 'session_id' | 'name'>) {
  return { projectId: project_id, id: `${session_id} ${Buffer.from(name).toString('base64url')}` }
}

function downloadRecord({ name, size_bytes, downloaded_at, expires_at }: Download): BrowserDownload {
  return { name, size_bytes, downloaded_at: downloaded_at.toISOString(), expires_at: expires_at.toISOString() }
}

function unreachable(cause: unknown): never {
  throw cause instanceof BerthError ? cause : new BerthError('session_unreachable', undefined, { cause })
}
