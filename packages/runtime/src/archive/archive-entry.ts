import type { Entry } from 'yauzl'

/** A member of an archive, as it is unpacked. */
export interface ArchiveEntry {
  /** A relative path of plain names, without empty names, `.` and `..`. */
  readonly path: string
  readonly kind: 'file' | 'folder' | 'link'
  readonly isExecutable: boolean
  readonly sizeBytes: number
}

const maxNameBytes = 255
const maxPathBytes = 2048

const madeByUnix = 3
const modeMask = 0o170000
const kinds = new Map([
  [0, 'file'], // Many programs omit the kind.
  [0o100000, 'file'],
  [0o040000, 'folder'],
  [0o120000, 'link'],
] as const)

/** An invalid archive. The message is a phrase that gives the reason. */
export class BadArchive extends Error {
  override readonly name = 'BadArchive'
}

/**
 * Reads the header of one member. Throws BadArchive when it is not permitted. Returns undefined for the root folder.
 */
export function readEntry(entry: Entry): ArchiveEntry | undefined {
  const named = shorten(entry.fileName)
  if (entry.isEncrypted()) throw new BadArchive(`${named} is encrypted`)
  if (!entry.canDecodeFileData()) throw new BadArchive(`${named} is compressed by an unknown method`)

  const path = plainPath(entry.fileName)
  if (path === '') return undefined
  const mode = entry.versionMadeBy >>> 8 === madeByUnix ? entry.externalFileAttributes >>> 16 : 0
  const kind = entry.fileName.endsWith('/') ? 'folder' : kinds.get((mode & modeMask) as 0)
  if (!kind) throw new BadArchive(`${named} is neither a file, a folder nor a link`)
  return { path, kind, isExecutable: (mode & 0o100) !== 0, sizeBytes: entry.uncompressedSize }
}

/** yauzl rejects absolute names and `..` too. This does not rely on it. */
function plainPath(fileName: string): string {
  const named = shorten(fileName)
  if (fileName.startsWith('/') || /^[a-z]:/i.test(fileName)) throw new BadArchive(`${named} is an absolute path`)
  const names = fileName.split('/').filter((name) => name !== '' && name !== '.')
  for (const name of names) {
    if (name === '..') throw new BadArchive(`${named} leads out of the archive`)
    if (name.includes('\0') || !name.isWellFormed()) throw new BadArchive(`${named} is not a valid name`)
    if (Buffer.byteLength(name) > maxNameBytes) throw new BadArchive(`${named} is too long a name`)
  }
  const path = names.join('/')
  if (Buffer.byteLength(path) > maxPathBytes) throw new BadArchive(`${named} is too long a path`)
  return path
}

/**
 * Checks the target of a link by its text. `..` must not follow a name: the name could be another link, and `..` would
 * then be relative to its target.
 */
export function checkLinkTarget(path: string, target: string): void {
  const named = shorten(path)
  const names = target.split('/').filter((name) => name !== '' && name !== '.')
  const upwards = names.findIndex((name) => name !== '..')
  const levels = upwards === -1 ? names.length : upwards
  if (target === '' || target.includes('\0')) throw new BadArchive(`${named} is a link to nothing`)
  if (target.startsWith('/') || levels > path.split('/').length - 1) {
    throw new BadArchive(`${named} is a link that leads out of the archive`)
  }
  if (names.slice(levels).includes('..')) throw new BadArchive(`${named} is a link with .. after a name`)
}

/** Rejects duplicate names and members below a file or link: they could escape the folder or hide another member. */
export function checkTree(entries: readonly ArchiveEntry[]): void {
  const byPath = new Map<string, ArchiveEntry>()
  for (const entry of entries) {
    if (byPath.has(entry.path)) throw new BadArchive(`it contains ${shorten(entry.path)} twice`)
    byPath.set(entry.path, entry)
  }
  for (const { path } of entries) {
    for (let end = path.lastIndexOf('/'); end !== -1; end = path.lastIndexOf('/', end - 1)) {
      const above = byPath.get(path.slice(0, end))
      if (above && above.kind !== 'folder') throw new BadArchive(`${shorten(path)} is below a ${above.kind}`)
    }
  }
}

function shorten(name: string): string {
  return JSON.stringify(name.length <= 100 ? name : `${name.slice(0, 100)}…`)
}
