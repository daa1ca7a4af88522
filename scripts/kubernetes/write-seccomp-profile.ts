import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { containerProfile } from '@berth/server/drivers/kubernetes/container-profile.ts'

/**
 * Writes the seccomp profile that the chart gives to machines. With `--check` it only reports whether the file is up to
 * date.
 */
const name = 'deploy/helm/berth/files/seccomp-machine.json'
const path = join(import.meta.dirname, '../..', name)
const text = `${JSON.stringify(containerProfile(), null, 2)}\n`

if (!process.argv.includes('--check')) {
  await writeFile(path, text)
  console.log(`wrote ${path}`)
} else if ((await readFile(path, 'utf8').catch(() => '')) !== text) {
  console.error(`${name} is not what the list of system calls says. Run: npm run generate`)
  process.exitCode = 1
}
