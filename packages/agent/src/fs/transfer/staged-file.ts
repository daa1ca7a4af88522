import { randomUUID } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { access, chmod, lstat, open, readlink, realpath, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { checkRegular } from '../disk-file.ts'
import { makeFoldersOnDisk } from '../folders.ts'
import { at, type Place, refusal } from '../fs-error.ts'

/** Prefix of incomplete files; watches ignore them. */
export const partPrefix = '.berth-part-'
const maxLinks = 40
const defaultMode = 0o644

/** An unused path in the same folder as the given one. */
export function partBeside(path: string): string {
  return join(dirname(path), `${partPrefix}${randomUUID()}`)
}

/**
 * A file that is written beside its destination and renamed into place: a reader sees either the old content or the new
 * one. Ends with `commit` or `discard`.
 */
export class StagedFile {
  readonly #place: Place
  /** The destination after links were followed. */
  readonly #target: string
  readonly #part: string
  readonly #mode: number
  /** The topmost folder that was created for it. */
  readonly #madeFolder: string | undefined

  private constructor(place: Place, target: string, mode: number, madeFolder: string | undefined) {
    this.#place = place
    this.#target = target
    this.#part = partBeside(target)
    this.#mode = mode
    this.#madeFolder = madeFolder
  }

  /** Creates missing parent folders. Without a mode, the file gets the mode of the file it replaces. */
  static async open(place: Place, mode?: number): Promise<StagedFile> {
    return at(place, async () => {
      const target = await followLinks(place)
      const existing = await statOf(target)
      if (existing) {
        checkRegular(existing, place)
        await access(target, constants.W_OK)
      }
      const madeFolder = await makeFoldersOnDisk({ ...place, path: dirname(target) }).catch((error) => {
        if (error.code === 'EEXIST') throw refusal(place.field, 'must not be below a file')
        throw error
      })
      return new StagedFile(place, target, mode ?? (existing ? existing.mode & 0o7777 : defaultMode), madeFolder)
    })
  }

  /** Writes the whole source. Errors of the source are thrown unchanged. */
  async fill(source: AsyncIterable<Uint8Array>): Promise<void> {
    await at(this.#place, async () => {
      const handle = await open(this.#part, 'wx', 0o600)
      await pipeline(source, handle.createWriteStream())
    })
  }

  async commit(): Promise<void> {
    await at(this.#place, async () => {
      await chmod(this.#part, this.#mode)
      await rename(this.#part, this.#target)
    })
  }

  /** Restores the previous state; does nothing after a commit. */
  async discard(): Promise<void> {
    await rm(this.#part, { force: true })
    const { length } = this.#madeFolder ?? this.#target
    for (let folder = dirname(this.#target); folder.length >= length; folder = dirname(folder)) {
      // A folder that is no longer empty is in use by somebody else, and so are its parents.
      if (!(await removeEmpty(folder))) return
    }
  }
}

/** The file that a write to the path affects: a link stays, also one to a file that does not exist yet. */
async function followLinks({ field, path }: Place): Promise<string> {
  let target = path
  for (let links = 0; links <= maxLinks; links++) {
    if (target === '/') return target
    const stats = await statOf(target)
    if (!stats?.isSymbolicLink()) return target
    target = resolve(await realpath(dirname(target)), await readlink(target))
  }
  throw refusal(field, 'must not go through so many symbolic links')
}

async function removeEmpty(folder: string): Promise<boolean> {
  return rmdir(folder).then(
    () => true,
    () => false,
  )
}

async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
