import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'

/**
 * Writes a bill of materials of an image as CycloneDX: the npm packages of the lock file, as npm lists them, and the
 * Debian packages of the image's dpkg database. `node scripts/images/write-sbom.ts ROOT NAME OUT.json`
 */

interface Component {
  readonly type: string
  readonly name: string
  readonly version: string
  readonly purl: string
}

const [root, name, out] = process.argv.slice(2)
if (root === undefined || name === undefined || out === undefined) {
  process.stderr.write('usage: node scripts/images/write-sbom.ts ROOT NAME OUT.json\n')
  process.exit(64)
}

const run = promisify(execFile)
const npmArguments = ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev', '--package-lock-only']
const { stdout } = await run('npm', npmArguments, { maxBuffer: 64 * 1024 ** 2 })
const sbom = JSON.parse(stdout)
sbom.metadata.component = { type: 'container', name, 'bom-ref': name, version: sbom.metadata.component.version }
// npm's dependency graph starts at the checkout, which is not a component here.
sbom.dependencies = sbom.dependencies?.filter(({ ref }: { ref: string }) => !ref.startsWith('berth@'))
sbom.components = [...sbom.components, ...debianPackages(await readFile(`${root}/var/lib/dpkg/status`, 'utf8'))]
await writeFile(out, `${JSON.stringify(sbom, null, 2)}\n`)
process.stdout.write(`${sbom.components.length} components in ${out}\n`)

function debianPackages(status: string): readonly Component[] {
  return status.split('\n\n').flatMap((entry) => {
    const field = (key: string) => new RegExp(`^${key}: (.*)$`, 'm').exec(entry)?.[1]
    const [package_, version, architecture] = [field('Package'), field('Version'), field('Architecture')]
    if (package_ === undefined || version === undefined || !field('Status')?.endsWith(' installed')) return []
    const purl = `pkg:deb/debian/${package_}@${encodeURIComponent(version)}?arch=${architecture}`
    return [{ type: 'library', name: package_, version, purl, 'bom-ref': purl }]
  })
}
