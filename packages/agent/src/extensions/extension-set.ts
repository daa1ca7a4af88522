import { rm } from 'node:fs/promises'
import type { PolicyExtension } from '@berth/runtime/archive/extension-archive.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { CdpPipe } from '../browser/cdp-pipe.ts'
import { findTarget, installedOf, workerRuns } from './targets.ts'

/** An extension unpacked into a folder of its own. */
export interface UnpackedExtension {
  readonly name: string
  readonly folder: string
  /** Whether it has a background worker, which Chromium starts when it loads the extension. */
  readonly hasWorker: boolean
  /** Set for an extension installed by policy; the folder then contains it packed. */
  readonly policy: PolicyExtension | undefined
}

interface LoadedExtension extends UnpackedExtension {
  /** Chromium's own id. */
  readonly id: string
}

/** Chromium's error for an extension that it does not load. */
export class ExtensionRefused extends Error {
  readonly extension: string

  constructor({ name }: UnpackedExtension, reason: string) {
    super(reason)
    this.extension = name
  }
}

/** Downloaded from the loopback, an extension is installed within half a second. */
const installLimitMilliseconds = 10_000
/** Far longer than a worker takes to start. */
const workerLimitMilliseconds = 5_000
/** A newly installed extension starts immediately; one installed before starts when it is needed. */
const firstStartMilliseconds = 500

/**
 * The extensions of the session. Chromium forgets them when it ends or gets another profile, so each launch loads them
 * again.
 */
export class ExtensionSet {
  readonly #logger: Logger
  readonly #first = Promise.withResolvers<void>()
  readonly #firstLoaded = Promise.withResolvers<void>()
  /** Extensions for the first launch. */
  #initial: readonly UnpackedExtension[] = []
  /** Extensions that Chromium may download and has not been seen to install. */
  #offered: readonly UnpackedExtension[] = []
  #loaded: readonly LoadedExtension[] = []
  /** Ids of extensions that a policy has installed in this Chromium. */
  #installed: ReadonlySet<string> = new Set()

  constructor(logger: Logger, { isExpected }: { readonly isExpected: boolean }) {
    this.#logger = logger
    this.#firstLoaded.promise.catch(() => {}) // The request that brought them handles the rejection.
    if (!isExpected) this.#first.resolve()
  }

  /** Resolves when the first launch may proceed: the session's initial extensions are available. */
  get arrived(): Promise<void> {
    return this.#first.promise
  }

  /** Whether Chromium must request extensions itself. */
  get needPolicies(): boolean {
    return this.#known().some(({ policy }) => policy !== undefined)
  }

  policyExtension(id: string): UnpackedExtension | undefined {
    return this.#known().find(({ policy }) => policy?.id === id)
  }

  /** Lets the first launch proceed with these, and resolves when it has loaded them. */
  async startWith(extensions: readonly UnpackedExtension[]): Promise<void> {
    this.#initial = extensions
    this.#first.resolve()
    await this.#firstLoaded.promise
  }

  /** Until disposed, Chromium is launched so that it downloads those of the extensions that policies name. */
  expectPolicies(extensions: readonly UnpackedExtension[]): Disposable {
    this.#offered = extensions
    return {
      [Symbol.dispose]: () => {
        this.#offered = []
      },
    }
  }

  /** Loads all extensions into a Chromium that was just launched, before clients are admitted. */
  async loadInto(pipe: CdpPipe): Promise<void> {
    this.#installed = await this.#awaitPolicies(pipe)
    this.#loaded = await Promise.all(this.#loaded.map((extension) => this.#loadAgain(pipe, extension)))
    await this.add(pipe, this.#initial).then(this.#firstLoaded.resolve, this.#firstLoaded.reject)
    this.#initial = []
  }

  /** Loads all of them into the running browser, or none. */
  async add(pipe: CdpPipe, extensions: readonly UnpackedExtension[]): Promise<void> {
    const loaded: LoadedExtension[] = []
    try {
      for (const extension of extensions) {
        loaded.push({ ...extension, id: await this.#load(pipe, extension) })
      }
    } catch (error) {
      await unload(pipe, loaded)
      throw error
    }
    this.#loaded = [...this.#loaded, ...loaded]
  }

  /** Resolves with the id that Chromium gives it. */
  async #load(pipe: CdpPipe, extension: UnpackedExtension): Promise<string> {
    const { policy } = extension
    if (!policy) return loadUnpacked(pipe, extension)
    if (!this.#installed.has(policy.id)) throw new ExtensionRefused(extension, 'Chromium does not install it.')
    return policy.id
  }

  async #awaitPolicies(pipe: CdpPipe): Promise<ReadonlySet<string>> {
    const policies = this.#known().flatMap(({ policy }) => policy ?? [])
    if (policies.length === 0) return new Set()
    const ids = policies.map(({ id }) => id)
    try {
      const installed = await installedOf(pipe, ids, installLimitMilliseconds)
      const started = await Promise.all(ids.map((id) => findTarget(pipe, id, firstStartMilliseconds)))
      // A policy of the session may close the page that was queried.
      return new Set(ids.filter((id, index) => installed.has(id) || started[index] !== undefined))
    } catch {
      return new Set() // Chromium has ended; the next launch checks again.
    }
  }

  #known(): readonly UnpackedExtension[] {
    return [...this.#loaded, ...this.#initial, ...this.#offered]
  }

  /** A crash must not end the session: an extension that fails to load is reported, and retried at the next launch. */
  async #loadAgain(pipe: CdpPipe, extension: LoadedExtension): Promise<LoadedExtension> {
    try {
      return { ...extension, id: await this.#load(pipe, extension) }
    } catch (error) {
      this.#logger.error(
        { extension: extension.name, reason: (error as Error).message },
        'an extension could not be loaded again',
      )
      return extension
    }
  }
}

async function loadUnpacked(pipe: CdpPipe, extension: UnpackedExtension): Promise<string> {
  const { id } = await pipe
    .send('Extensions.loadUnpacked', { path: extension.folder }, { limitMilliseconds: Number.POSITIVE_INFINITY })
    .catch((error: Error) => {
      throw new ExtensionRefused(extension, error.message)
    })
  return id as string
}

/**
 * A worker whose start is interrupted by an uninstall stays among the targets and never answers. So extensions with a
 * worker are removed after it runs.
 */
async function unload(pipe: CdpPipe, extensions: readonly LoadedExtension[]): Promise<void> {
  for (const { id, hasWorker, policy } of extensions) {
    if (policy) continue // It is removed with its policy.
    if (hasWorker) await workerRuns(pipe, id, workerLimitMilliseconds)
    await pipe.send('Extensions.uninstall', { id }).catch(() => {})
  }
}

export async function removeFolders(extensions: readonly UnpackedExtension[]): Promise<void> {
  await Promise.all(extensions.map(({ folder }) => rm(folder, { recursive: true, force: true })))
}
