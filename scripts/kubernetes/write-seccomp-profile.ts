import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { containerProfile } from '@berth/server/drivers/kubernetes/container-profile.ts'

/**
 * Writes the seccomp profiles that the chart gives to machines and compose.yaml to berth. With `--check` it only reports
 * whether the files are up to date.
 */
const machine = containerProfile()
// Docker before 22 does not know `defaultErrnoRet`, and glibc takes the older way only when this call seems unknown.
const withoutClone3 = { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: machine.defaultErrnoRet }
const profiles = {
  'deploy/helm/berth/files/seccomp-machine.json': machine,
  'deploy/docker/seccomp.json': { ...machine, syscalls: [...machine.syscalls, withoutClone3] },
}

for (const [name, profile] of Object.entries(profiles)) {
  const path = join(import.meta.dirname, '../..', name)
  const text = `${JSON.stringify(profile, null, 2)}\n`
  if (!process.argv.includes('--check')) {
    await writeFile(path, text)
    console.log(`wrote ${path}`)
  } else if ((await readFile(path, 'utf8').catch(() => '')) !== text) {
    console.error(`${name} is not what the list of system calls says. Run: npm run generate`)
    process.exitCode = 1
  }
}
