import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'

/**
 * Builds the command line as a package without dependencies, for computers without a berth server: one file, below
 * dist/cli. `npm install -g ./dist/cli` installs it.
 */
const checkout = join(import.meta.dirname, '..')
const folder = process.argv[2] ?? join(checkout, 'dist', 'cli')

const { version, description } = JSON.parse(await readFile(join(checkout, 'package.json'), 'utf8'))
await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
const program = join(folder, 'berth.mjs')
await build({
  entryPoints: [join(checkout, 'packages/cli/src/client-main.ts')],
  outfile: program,
  bundle: true,
  minifySyntax: true,
  platform: 'node',
  format: 'esm',
  target: 'node22',
  // CommonJS packages call require.
  banner: {
    js: "#!/usr/bin/env node\nimport { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)",
  },
  logLevel: 'warning',
})
await chmod(program, 0o755)
const manifest = {
  name: 'berth',
  version,
  description,
  type: 'module',
  bin: { berth: 'berth.mjs' },
  engines: { node: '>=22' },
}
await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
console.log(`wrote ${program}`)
