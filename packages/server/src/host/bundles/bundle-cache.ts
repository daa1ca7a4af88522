import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

export interface BundledFile {
  readonly name: string
  readonly code: Uint8Array
}

interface Manifest {
  /** The version of each source file by path. */
  readonly sources: Readonly<Record<string, string>>
  /** The digest of each file, because one server may write while another reads. */
  readonly files: Readonly<Record<string, string>>
}

/** Caches the last bundle of some programs, because bundling takes a third of a server's start. */
export class BundleCache {
  readonly #parent: string
  readonly #folder: string

  /** The name distinguishes programs and options. */
  constructor({ folder, name }: { readonly folder: string; readonly name: string }) {
    this.#parent = folder
    this.#folder = join(folder, createHash('sha256').update(name).digest('hex').slice(0, 16))
  }

  /** Undefined if a source has changed, or if nothing readable is there. */
  async read(): Promise<readonly BundledFile[] | undefined> {
    try {
      const { sources, files } = JSON.parse(await readFile(join(this.#folder, 'manifest.json'), 'utf8')) as Manifest
      const versions = await versionsOf(Object.keys(sources))
      if (Object.entries(sources).some(([path, version]) => versions[path] !== version)) return undefined
      const bundle = await Promise.all(
        Object.keys(files).map(async (name) => ({ name, code: await readFile(join(this.#folder, name)) })),
      )
      return bundle.every(({ name, code }) => digestOf(code) === files[name]) ? bundle : undefined
    } catch {
      return undefined
    }
  }

  /**
   * A checkout that this user cannot write has no cache. `startedAt` is when the bundler started to read the sources.
   */
  async write(files: readonly BundledFile[], sourcePaths: readonly string[], startedAt: number): Promise<void> {
    const unfinished = join(this.#parent, `unfinished-${randomUUID()}`)
    try {
      const manifest: Manifest = {
        sources: await versionsOf(sourcePaths, startedAt),
        files: Object.fromEntries(files.map(({ name, code }) => [name, digestOf(code)])),
      }
      await mkdir(unfinished, { recursive: true })
      for (const { name, code } of files) await writeFile(join(unfinished, name), code)
      await writeFile(join(unfinished, 'manifest.json'), JSON.stringify(manifest))
      await rm(this.#folder, { recursive: true, force: true })
      await rename(unfinished, this.#folder)
    } catch {
      // Another server may have written it at the same time.
      await rm(unfinished, { recursive: true, force: true }).catch(() => {})
    }
  }
}

/** The time and size of a file change with its content. Rejects if one has changed since `before`. */
async function versionsOf(paths: readonly string[], before = Number.POSITIVE_INFINITY) {
  const versions: Record<string, string> = {}
  await Promise.all(
    paths.map(async (path) => {
      const { mtimeMs, ctimeMs, size } = await stat(path)
      if (Math.floor(ctimeMs) > before) throw new Error(`${path} has changed`)
      versions[resolve(path)] = `${mtimeMs} ${ctimeMs} ${size}`
    }),
  )
  return versions
}

function digestOf(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}
