import type { Readable } from 'node:stream'
import stripJsonComments from 'strip-json-comments' // Chromium accepts comments in manifests.
import type { Archive } from './archive.ts'
import { BadArchive } from './archive-entry.ts'
import { zipOffsetOfCrx } from './crx.ts'

/** The properties of an extension that berth needs before Chromium loads it. */
export interface ExtensionFacts {
  /** The top-level folder that contains the extension. Absent when the extension is at the root of the archive. */
  readonly root: string | undefined
  readonly hasWorker: boolean
  /** Present for an extension that Chromium runs only when a policy installs it. */
  readonly policy: PolicyExtension | undefined
}

export interface PolicyExtension {
  /** Chromium's own id: 32 letters from a to p. */
  readonly id: string
  readonly version: string
  /** The path of the packed extension below the root. */
  readonly crx: string
}

export const extensionArchiveLimits = { maxEntries: 20_000, maxUnpackedBytes: 512 * 1024 * 1024 }

const maxTextBytes = 1024 * 1024
const manifestName = 'manifest.json'
const updateManifestName = 'update.xml'

/** Reads the manifest of the extension. Throws BadArchive when the archive contains no valid extension. */
export async function inspectExtension(archive: Archive): Promise<ExtensionFacts> {
  const root = findRoot(archive)
  const manifest = await readManifest(archive, below(root, manifestName))
  const hasWorker = hasBackgroundWorker(manifest)
  const policy = needsPolicy(manifest) ? await readPolicyExtension(archive, root) : undefined
  return { root, hasWorker, policy }
}

/** Ignores the folder that macOS adds to archives. */
function findRoot(archive: Archive): string | undefined {
  const manifests = new Set(archive.entries.filter(({ kind }) => kind === 'file').map(({ path }) => path))
  if (manifests.has(manifestName)) return undefined
  const tops = new Set(archive.entries.map(({ path }) => path.split('/', 1)[0] ?? ''))
  tops.delete('__MACOSX')
  tops.delete('.DS_Store')
  const [top] = tops
  if (tops.size === 1 && top !== undefined && manifests.has(`${top}/${manifestName}`)) return top
  throw new BadArchive(`it contains no ${manifestName}, neither at its root nor in a single top-level folder`)
}

function below(root: string | undefined, name: string): string {
  return root === undefined ? name : `${root}/${name}`
}

interface Manifest {
  readonly background?: unknown
  readonly permissions?: unknown
  readonly optional_permissions?: unknown
}

async function readManifest(archive: Archive, path: string): Promise<Manifest> {
  const text = (await readText(await archive.read(path), manifestName)).replace(/^\uFEFF/, '')
  let manifest: Record<string, unknown>
  try {
    manifest = JSON.parse(stripJsonComments(text))
  } catch (cause) {
    throw new BadArchive(`its ${manifestName} is not JSON`, { cause })
  }
  if (typeof manifest !== 'object' || manifest === null || Array.isArray(manifest)) {
    throw new BadArchive(`its ${manifestName} is not an object`)
  }
  if (manifest.manifest_version !== 2 && manifest.manifest_version !== 3) {
    throw new BadArchive(`its ${manifestName} must have a manifest_version of 2 or 3`)
  }
  for (const field of ['name', 'version']) {
    if (typeof manifest[field] !== 'string') throw new BadArchive(`its ${manifestName} must have a ${field}`)
  }
  return manifest
}

function hasBackgroundWorker({ background }: Manifest): boolean {
  return typeof (background as { service_worker?: unknown } | null | undefined)?.service_worker === 'string'
}

/** Chromium lets an extension block requests only when a policy installed it. */
function needsPolicy({ permissions, optional_permissions: optional }: Manifest): boolean {
  const all = [permissions, optional].flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : []))
  return all.some((permission) => {
    if (typeof permission === 'string') return permission === 'webRequestBlocking'
    const { webRequest } = (permission ?? {}) as { webRequest?: unknown }
    return Array.isArray(webRequest) && webRequest.includes('blocking')
  })
}

async function readPolicyExtension(archive: Archive, root: string | undefined): Promise<PolicyExtension> {
  const files = archive.entries.filter(({ kind }) => kind === 'file').map(({ path }) => path)
  const update = below(root, updateManifestName)
  const crx = files.find((path) => path.endsWith('.crx') && !path.slice(below(root, '').length).includes('/'))
  if (!files.includes(update) || crx === undefined) {
    throw new BadArchive('its permission webRequestBlocking needs a policy, and for that update.xml and a .crx file')
  }
  const text = await readText(await archive.read(update), updateManifestName)
  const id = /\bappid\s*=\s*["']([a-p]{32})["']/.exec(text)?.[1]
  const version = /<updatecheck\b[^>]*\bversion\s*=\s*["'](\d+(?:\.\d+){0,3})["']/.exec(text)?.[1]
  if (id === undefined || version === undefined) {
    throw new BadArchive('its update.xml must have an app with an appid, and an updatecheck with a version')
  }
  for await (const chunk of await archive.read(crx)) {
    zipOffsetOfCrx(chunk as Buffer)
    break
  }
  return { id, version, crx: crx.slice(below(root, '').length) }
}

async function readText(content: Readable, name: string): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of content as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > maxTextBytes) throw new BadArchive(`its ${name} is larger than ${maxTextBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
