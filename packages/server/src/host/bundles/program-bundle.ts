import { createHash } from 'node:crypto'
import { chmod, cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { exists } from '@berth/runtime/files/exists.ts'
import type { Plugin } from 'esbuild'
import { BundleCache, type BundledFile } from './bundle-cache.ts'

/** Programs that run without access to berth's own folders. Bundling also avoids stripping types at each start. */
export interface BundledPrograms {
  /** Source files by program name. */
  readonly entries: Readonly<Record<string, string>>
  /** Packages that are copied unchanged, because they load files of their own at run time. */
  readonly packages: readonly string[]
  /** Files that are copied unchanged, by name. */
  readonly files?: Readonly<Record<string, string>>
}

/** Next to Node's cache of compiled modules, for all data folders. */
const checkoutCache = join(import.meta.dirname, '../../../../../.tools/bundles')

/**
 * Creates a folder with the programs, named after its content, and returns its path. Code that is loaded on demand is
 * in separate files, so that a start reads little. Other folders are removed when no machine uses them.
 */
export async function bundlePrograms(
  programs: BundledPrograms,
  folder: string,
  cacheFolder = checkoutCache,
): Promise<string> {
  const { entries, packages } = programs
  await mkdir(folder, { recursive: true })
  const cache = new BundleCache({ folder: cacheFolder, name: JSON.stringify([entries, packages, process.version]) })
  const bundling = lastBundle.then(async () => (await cache.read()) ?? bundle(entries, packages, cache))
  lastBundle = bundling.catch(() => {})
  const copied = Object.entries(programs.files ?? {}).map(async ([name, source]) => ({
    name,
    code: await readFile(source),
  }))
  const files = [...(await bundling), ...(await Promise.all(copied))]
  const sources = packages.map(folderOfPackage)
  const path = join(folder, await nameOf(files, sources))
  if (!(await exists(path))) {
    const unfinished = `${path}.new`
    await rm(unfinished, { recursive: true, force: true })
    await mkdir(unfinished)
    for (const { name, code } of files) await writeFile(join(unfinished, name), code)
    for (const [index, source] of sources.entries()) {
      await cp(source, join(unfinished, 'node_modules', packages[index] as string), { recursive: true })
    }
    await grantReadAccess(unfinished)
    await rename(unfinished, path)
  }
  await removeUnused(path)
  return path
}

/** Bundles the program of a page into one module. */
export async function bundleForBrowsers(entry: string): Promise<Buffer> {
  const bundling = lastBundle.then(() => bundlePage(entry))
  lastBundle = bundling.catch(() => {})
  return bundling
}

/** Bundles the files of a site: its programs, the chunks that they load on demand, and its styles. */
export async function bundleSite(entry: string): Promise<BundledSite> {
  const bundling = lastBundle.then(() => bundleFiles(entry))
  lastBundle = bundling.catch(() => {})
  return bundling
}

/** Runs one bundle at a time: the first one stops the bundler's helper process, which would abort the other. */
let lastBundle: Promise<unknown> = Promise.resolve()

export interface BundledSite {
  /** Each name is derived from the content. */
  readonly files: readonly BundledFile[]
  /** The entry script of the page and its static imports. */
  readonly scripts: readonly string[]
  readonly style: string
}

async function bundle(
  entries: BundledPrograms['entries'],
  packages: BundledPrograms['packages'],
  cache: BundleCache,
): Promise<readonly BundledFile[]> {
  const { build, stop } = await import('esbuild')
  const startedAt = systemClock.now().getTime()
  const { outputFiles, metafile } = await build({
    entryPoints: { ...entries },
    external: [...packages],
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    outdir: '.',
    outExtension: { '.js': '.mjs' },
    platform: 'node',
    format: 'esm',
    target: `node${process.versions.node}`,
    // Packages in CommonJS format load Node's modules by this name.
    banner: {
      js: "import { createRequire as requireBy } from 'node:module'; const require = requireBy(import.meta.url);",
    },
    logLevel: 'silent',
  })
  // The helper process would otherwise run as long as the server.
  await stop()
  const files = outputFiles.map(({ path, contents }) => ({ name: basename(path), code: contents }))
  await cache.write(files, Object.keys(metafile.inputs), startedAt)
  return files
}

async function bundlePage(entry: string): Promise<Buffer> {
  const { build, stop } = await import('esbuild')
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    legalComments: 'inline',
    logLevel: 'silent',
  })
  await stop()
  return Buffer.from(outputFiles[0]?.contents ?? '')
}

/** Zod's error messages exist in fifty languages, which are a third of a page that only uses English. */
const withoutTranslations: Plugin = {
  name: 'without-translations',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js'",
    })),
}

async function bundleFiles(entry: string): Promise<BundledSite> {
  const { build, stop } = await import('esbuild')
  const { outputFiles, metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    splitting: true,
    minify: true,
    write: false,
    metafile: true,
    outdir: '.',
    entryNames: '[name]-[hash]',
    platform: 'browser',
    format: 'esm',
    jsx: 'automatic',
    target: 'es2022',
    define: { 'process.env.NODE_ENV': '"production"' },
    legalComments: 'none',
    plugins: [withoutTranslations],
    logLevel: 'silent',
  })
  await stop()
  const first = Object.keys(metafile.outputs).find((path) => metafile.outputs[path]?.entryPoint !== undefined) ?? ''
  const scripts = new Set([first])
  for (const path of scripts) {
    for (const { path: next, kind } of metafile.outputs[path]?.imports ?? []) {
      if (kind === 'import-statement') scripts.add(next)
    }
  }
  return {
    files: outputFiles.map(({ path, contents }) => ({ name: basename(path), code: contents })),
    scripts: [...scripts].map((path) => basename(path)),
    style: basename(metafile.outputs[first]?.cssBundle ?? ''),
  }
}

async function nameOf(files: readonly BundledFile[], packageFolders: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const { name, code } of files) hash.update(`${name}\n`).update(code)
  for (const folder of packageFolders) hash.update(await readFile(join(folder, 'package.json')))
  return hash.digest('hex').slice(0, 16)
}

export function folderOfPackage(name: string): string {
  return dirname(fileURLToPath(import.meta.resolve(`${name}/package.json`)))
}

/** The programs run as other users, whatever umask berth was started with. */
async function grantReadAccess(folder: string): Promise<void> {
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const { mode } = await stat(path)
    await chmod(path, entry.isDirectory() || mode & 0o100 ? 0o755 : 0o644)
  }
}

/** Processes of an earlier server still use its programs, whose folder is in their command lines. */
async function removeUnused(path: string): Promise<void> {
  const folder = dirname(path)
  const others = (await readdir(folder)).map((name) => join(folder, name)).filter((other) => other !== path)
  if (others.length === 0) return
  const commands = await listCommands()
  const unused = others.filter((other) => !commands.some((command) => command.includes(other)))
  await Promise.all(unused.map((other) => rm(other, { recursive: true })))
}

async function listCommands(): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  // A process that ends meanwhile uses nothing.
  return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
}
