import { createHash } from 'node:crypto'
import { chmod, cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { exists } from '@berth/runtime/files/exists.ts'
import { build, stop } from 'esbuild'

/** Programs that run apart from berth's own folders, and start without TypeScript being taken away from them first. */
export interface BundledPrograms {
  /** Sources by the name of the program. */
  readonly entries: Readonly<Record<string, string>>
  /** Packages that go along as they are, because they load files of their own at run time. */
  readonly packages: readonly string[]
}

/**
 * Makes a folder with the programs, named after what is in it, and returns its path. What a program loads on first use
 * is in files of its own, so that a start reads little. Folders of other contents go when no machine uses them.
 */
export async function bundlePrograms({ entries, packages }: BundledPrograms, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  const bundling = lastBundle.then(() => bundle(entries, packages))
  lastBundle = bundling.catch(() => {})
  const files = await bundling
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
    await showToOthers(unfinished)
    await rename(unfinished, path)
  }
  await removeOthers(path)
  return path
}

/** One after another: the bundler's helper process, which the first stops, would take the other's work along. */
let lastBundle: Promise<unknown> = Promise.resolve()

interface BundledFile {
  readonly name: string
  readonly code: Uint8Array
}

async function bundle(
  entries: BundledPrograms['entries'],
  packages: BundledPrograms['packages'],
): Promise<readonly BundledFile[]> {
  const { outputFiles } = await build({
    entryPoints: { ...entries },
    external: [...packages],
    bundle: true,
    splitting: true,
    write: false,
    outdir: '.',
    outExtension: { '.js': '.mjs' },
    platform: 'node',
    format: 'esm',
    target: `node${process.versions.node}`,
    // Packages in the older module format load Node's own modules by this name.
    banner: {
      js: "import { createRequire as requireBy } from 'node:module'; const require = requireBy(import.meta.url);",
    },
    logLevel: 'silent',
  })
  // Its helper process would stay as long as the server.
  await stop()
  return outputFiles.map(({ path, contents }) => ({ name: basename(path), code: contents }))
}

async function nameOf(files: readonly BundledFile[], packageFolders: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const { name, code } of files) hash.update(`${name}\n`).update(code)
  for (const folder of packageFolders) hash.update(await readFile(join(folder, 'package.json')))
  return hash.digest('hex').slice(0, 16)
}

function folderOfPackage(name: string): string {
  return dirname(fileURLToPath(import.meta.resolve(`${name}/package.json`)))
}

/** For the users under whom they run, whatever umask berth was started with. */
async function showToOthers(folder: string): Promise<void> {
  await chmod(folder, 0o755)
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const { mode } = await stat(path)
    await chmod(path, entry.isDirectory() || mode & 0o100 ? 0o755 : 0o644)
  }
}

/** Processes of an earlier server go on with its programs, whose folder their command lines name. */
async function removeOthers(path: string): Promise<void> {
  const folder = dirname(path)
  const others = (await readdir(folder)).map((name) => join(folder, name)).filter((other) => other !== path)
  if (others.length === 0) return
  const commands = await listCommands()
  const unused = others.filter((other) => !commands.some((command) => command.includes(other)))
  await Promise.all(unused.map((other) => rm(other, { recursive: true })))
}

async function listCommands(): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  // One that ends meanwhile uses nothing.
  return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
}
