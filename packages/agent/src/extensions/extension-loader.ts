import { rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { BerthError } from '@berth/contract/errors.ts'
import { Queue } from '@berth/runtime/async/queue.ts'
import type { Browser } from '../browser/browser.ts'
import { ExtensionRefused, type ExtensionSet, removeFolders } from './extension-set.ts'
import { PolicyServer } from './policy-server.ts'
import { rehearsalUpload } from './rehearsal-upload.ts'
import { unpackExtensions } from './unpack-extensions.ts'

interface ExtensionLoaderOptions {
  readonly homeFolder: string
  /** A folder outside the session's home. */
  readonly runFolder: string
  readonly browser: Browser
  readonly extensions: ExtensionSet
}

/** Loads extensions for the first launch or into the running browser: all of a request, or none. */
export class ExtensionLoader {
  readonly #options: ExtensionLoaderOptions
  readonly #policyServer: PolicyServer
  readonly #queue = new Queue()

  constructor(options: ExtensionLoaderOptions) {
    this.#options = options
    this.#policyServer = new PolicyServer(options.extensions)
  }

  /** Unpacks a sample extension and removes it, as a warm-up: the first time takes several times as long. */
  async rehearse(): Promise<void> {
    const { runFolder } = this.#options
    await unpackExtensions(rehearsalUpload(), runFolder)
    await rm(join(runFolder, 'extensions'), { recursive: true })
  }

  /** One request at a time, because two could contain the same name. */
  take(request: IncomingMessage): Promise<void> {
    return this.#queue.run(() => this.#take(request))
  }

  async #take(request: IncomingMessage): Promise<void> {
    const { homeFolder, browser, extensions } = this.#options
    const unpacked = await unpackExtensions(request, homeFolder)
    try {
      const isPolicy = unpacked.some(({ policy }) => policy !== undefined)
      const taken = unpacked.find(({ policy }) => policy && extensions.policyExtension(policy.id))
      if (taken) throw new ExtensionRefused(taken, 'an extension with its id is loaded already')
      if (isPolicy) await this.#policyServer.start()
      if (!browser.hasBegun) await extensions.startWith(unpacked)
      else if (isPolicy) await this.#relaunchWith(unpacked)
      else await extensions.add(await browser.pipe(), unpacked)
    } catch (error) {
      await removeFolders(unpacked)
      if (!(error instanceof ExtensionRefused)) throw error
      throw new BerthError('extension_not_loadable', { extension: error.extension, reason: error.message })
    }
  }

  /**
   * Chromium reads policies of extensions at any time, but downloads the extensions only if it was launched to do so.
   */
  async #relaunchWith(unpacked: Parameters<ExtensionSet['add']>[1]): Promise<void> {
    const { browser, extensions } = this.#options
    using _expected = extensions.expectPolicies(unpacked)
    await browser.relaunch()
    await extensions.add(await browser.pipe(), unpacked)
  }
}
