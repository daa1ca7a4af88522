import { createHash } from 'node:crypto'
import { chmod, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { build, stop } from 'esbuild'

const agentFolder = join(import.meta.dirname, '../../../../agent/src')

/** Sources of the programs that machines get, each as one file, so that they need nothing else of berth's own folders. */
export interface AgentSources {
  readonly agent: string
  /** What the agent starts for its first BiDi client: a megabyte that no start of a session has to read. */
  readonly bidiMapper: string
}

export const agentSources: AgentSources = {
  agent: join(agentFolder, 'main.ts'),
  bidiMapper: join(agentFolder, 'bidi-mapper.ts'),
}

/**
 * Bundles each entry into one file and returns the files, in the same order. They are named after their content, and
 * those of other contents are removed: machines that run hold on to theirs by a mount of each.
 */
export async function bundleAgent<Entries extends readonly string[]>(
  entries: Entries,
  folder: string,
): Promise<{ readonly [Index in keyof Entries]: string }> {
  await mkdir(folder, { recursive: true })
  const codes = await Promise.all(entries.map((entry) => bundle(entry)))
  // Its helper process would stay as long as the server.
  await stop()
  const paths: string[] = []
  // One after the other: two of the same content are the same file.
  for (const code of codes) paths.push(await keep(code, folder))
  const names = paths.map((path) => basename(path))
  const others = (await readdir(folder)).filter((other) => !names.includes(other))
  await Promise.all(others.map((other) => rm(join(folder, other))))
  return paths as unknown as { readonly [Index in keyof Entries]: string }
}

async function keep(code: Uint8Array, folder: string): Promise<string> {
  const path = join(folder, `agent-${createHash('sha256').update(code).digest('hex').slice(0, 16)}.mjs`)
  await writeFile(`${path}.new`, code)
  // For the users of machines, whatever umask berth was started with.
  await chmod(`${path}.new`, 0o644)
  await rename(`${path}.new`, path)
  return path
}

async function bundle(entry: string): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: `node${process.versions.node}`,
    // Packages in the older module format load Node's own modules by this name.
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'silent',
  })
  const [file] = outputFiles
  if (!file) throw new Error(`esbuild made nothing of ${entry}`)
  return file.contents
}
