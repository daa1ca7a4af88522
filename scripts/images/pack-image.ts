import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'

/**
 * Packs the file system of an image as an archive for `docker load` and `ctr images import`:
 * `node scripts/images/pack-image.ts LAYER.tar OUT.tar NAME:TAG CONFIG`, with the image's configuration as JSON.
 */

const run = promisify(execFile)
const [layer, out, name, config] = process.argv.slice(2)
if (layer === undefined || out === undefined || name === undefined || config === undefined) {
  process.stderr.write('usage: node scripts/images/pack-image.ts LAYER.tar OUT.tar NAME:TAG CONFIG\n')
  process.exit(64)
}

const hash = createHash('sha256')
await pipeline(createReadStream(layer), hash)
const digest = hash.digest('hex')
const created = new Date(Number(process.env.SOURCE_DATE_EPOCH ?? 0) * 1000).toISOString()
const image = {
  created,
  architecture: process.arch === 'x64' ? 'amd64' : process.arch,
  os: 'linux',
  config: JSON.parse(config),
  rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  history: [{ created, created_by: 'scripts/images/build-images.sh' }],
}

const folder = await mkdtemp(join(dirname(resolve(out)), 'pack-'))
try {
  await writeFile(join(folder, 'config.json'), JSON.stringify(image))
  const manifest = [{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }]
  await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest))
  // A link that tar follows, because the layer is large.
  await symlink(resolve(layer), join(folder, 'layer.tar'))
  const files = ['manifest.json', 'config.json', 'layer.tar']
  await run('tar', ['-c', '-h', '-f', out, '--mtime', created, '--owner=0', '--group=0', '-C', folder, ...files])
} finally {
  await rm(folder, { recursive: true })
}
