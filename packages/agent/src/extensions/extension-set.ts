import { rm } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { PolicyExtension } from '@berth/runtime/archive/extension-archive.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { CdpPipe } from '../browser/cdp-pipe.ts'

/** An extension that lies unpacked in a folder of its own. */
export interface UnpackedExtension {
  readonly name: string
  readonly folder: string
  /** Whether it has a background worker, which Chromium starts when the extension is loaded. */
  readonly hasWorker: boolean
  /** Of one that a policy has installed; the folder then holds it packed. */
  readonly policy: PolicyExtension | undefined
}

interface LoadedExtension extends UnpackedExtension {
  /** Chromium's own id. */
  readonly id: string
}

/** What Chromium says of an extension that it does not load. */
export class ExtensionRefused extends Error {
  readonly extension: string

  constructor({ name }: UnpackedExtension, reason: string) {
    super(reason)
    this.extension = name
  }
}

const installLimitMilliseconds = 15_000
/** Far more than a worker takes to start. */
const workerLimitMilliseconds = 5_000
const pollMilliseconds = 50

/** The extensions of the session. Chromium forgets them when it ends, or has another profile: each launch loads them again. */
export class ExtensionSet {
  readonly #logger: Logger
  readonly #first = Promise.withResolvers<void>()
  readonly #firstLoaded = Promise.withResolvers<void>()
  /** Those that the first launch loads. */
  #initial: readonly UnpackedExtension[] = []
  /** Those that Chromium may fetch, and has not been seen to have. */
  #offered: readonly UnpackedExtension[] = []
  #loaded: readonly LoadedExtension[] = []

  constructor(logger: Logger, { isExpected }: { readonly isExpected: boolean }) {
    this.#logger = logger
    this.#firstLoaded.promise.catch(() => {}) // Whoever brought them hears of it.
    if (!isExpected) this.#first.resolve()
  }

  /** Resolves when the first launch may go ahead: the extensions that the session starts with are there. */
  get arrived(): Promise<void> {
    return this.#first.promise
  }

  /** Whether Chromium must ask for extensions by itself. */
  get needPolicies(): boolean {
    return this.#known().some(({ policy }) => policy !== undefined)
  }

  policyExtension(id: string): UnpackedExtension | undefined {
    return this.#known().find(({ policy }) => policy?.id === id)
  }

  /** Lets the first launch go ahead with these, and resolves when it has loaded them. */
  async startWith(extensions: readonly UnpackedExtension[]): Promise<void> {
    this.#initial = extensions
    this.#first.resolve()
    await this.#firstLoaded.promise
  }

  /** Until the disposal, Chromium is launched so that it fetches those of them that policies name, and can. */
  expectPolicies(extensions: readonly UnpackedExtension[]): Disposable {
    this.#offered = extensions
    return {
      [Symbol.dispose]: () => {
        this.#offered = []
      },
    }
  }

  /** Loads everything into a Chromium that has just been launched, before clients are let in. */
  async loadInto(pipe: CdpPipe): Promise<void> {
    const lost = this.#loaded.filter(({ policy }) => !policy)
    const kept = this.#loaded.filter(({ policy }) => policy)
    const again = await Promise.all(lost.map((extension) => this.#loadAgain(pipe, extension)))
    this.#loaded = [...kept, ...again.flatMap((extension) => extension ?? [])]
    await this.add(pipe, this.#initial).then(this.#firstLoaded.resolve, this.#firstLoaded.reject)
    this.#initial = []
  }

  /** Loads all of them into the running browser, or none. */
  async add(pipe: CdpPipe, extensions: readonly UnpackedExtension[]): Promise<void> {
    const loaded: LoadedExtension[] = []
    try {
      for (const extension of extensions) {
        const id = extension.policy
          ? await installed(pipe, extension, extension.policy.id)
          : await loadUnpacked(pipe, extension)
        loaded.push({ ...extension, id })
      }
    } catch (error) {
      await unload(pipe, loaded)
      throw error
    }
    this.#loaded = [...this.#loaded, ...loaded]
  }

  #known(): readonly UnpackedExtension[] {
    return [...this.#loaded, ...this.#initial, ...this.#offered]
  }

  /** A crash is no reason to lose the session: what does not come back is missed, and told of. */
  async #loadAgain(pipe: CdpPipe, extension: LoadedExtension): Promise<LoadedExtension | undefined> {
    try {
      return { ...extension, id: await loadUnpacked(pipe, extension) }
    } catch (error) {
      this.#logger.error({ extension: extension.name, reason: (error as Error).message }, 'an extension is lost')
      return undefined
    }
  }
}

async function loadUnpacked(pipe: CdpPipe, extension: UnpackedExtension): Promise<string> {
  const { id } = await pipe.send('Extensions.loadUnpacked', { path: extension.folder }).catch((error: Error) => {
    throw new ExtensionRefused(extension, error.message)
  })
  return id as string
}

/**
 * A worker whose start an uninstall breaks off stays among the targets for ever, and answers nobody who attaches to it:
 * those that have one are taken away when it runs.
 */
async function unload(pipe: CdpPipe, extensions: readonly LoadedExtension[]): Promise<void> {
  for (const { id, hasWorker } of extensions) {
    if (hasWorker) await Promise.race([workerAnswers(pipe, id), delay(workerLimitMilliseconds)]).catch(() => {})
    await pipe.send('Extensions.uninstall', { id }).catch(() => {})
  }
}

async function workerAnswers(pipe: CdpPipe, id: string): Promise<void> {
  const worker = await findTarget(pipe, id, workerLimitMilliseconds)
  const { sessionId } = await pipe.send('Target.attachToTarget', { targetId: worker?.targetId, flatten: true })
  await pipe.send('Runtime.evaluate', { expression: '1' }, sessionId as string)
  await pipe.send('Target.detachFromTarget', { sessionId })
}

/** Resolves when Chromium has fetched and started it. It tells of its worker alone, and of a refusal not at all. */
async function installed(pipe: CdpPipe, extension: UnpackedExtension, id: string): Promise<string> {
  if (await findTarget(pipe, id, installLimitMilliseconds)) return id
  throw new ExtensionRefused(extension, `Chromium has not installed it within ${installLimitMilliseconds / 1000} s`)
}

interface Target {
  readonly targetId: string
  readonly url: string
}

/** A target of the extension, as soon as there is one; nothing when the time is over. */
async function findTarget(pipe: CdpPipe, id: string, limitMilliseconds: number): Promise<Target | undefined> {
  const giveUp = performance.now() + limitMilliseconds
  for (;;) {
    const { targetInfos } = await pipe.send('Target.getTargets')
    const found = (targetInfos as readonly Target[]).find(({ url }) => url.startsWith(`chrome-extension://${id}/`))
    if (found || performance.now() > giveUp) return found
    await delay(pollMilliseconds)
  }
}

export async function removeFolders(extensions: readonly UnpackedExtension[]): Promise<void> {
  await Promise.all(extensions.map(({ folder }) => rm(folder, { recursive: true, force: true })))
}
