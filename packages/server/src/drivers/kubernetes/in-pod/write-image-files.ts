import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { writeNetworkFiles } from '@berth/runtime/machine-network/network-command.ts'
import { type BundledPrograms, bundlePrograms, folderOfPackage } from '../../../host/bundles/program-bundle.ts'
import { agentPrograms, appPackages } from '../../local/sandbox/agent-programs.ts'
import { seccompFilter } from '../../local/sandbox/seccomp-filter.ts'
import { imageFiles } from './image-files.ts'

const egressFolder = join(import.meta.dirname, '../../../../../egress/src')
const containerPrograms: BundledPrograms = {
  entries: { 'start-machine': join(import.meta.dirname, 'start-machine.ts') },
  packages: [],
}
const egressPrograms: BundledPrograms = {
  entries: { pod: join(egressFolder, 'pod/main.ts'), worker: join(egressFolder, 'workers/worker.ts') },
  packages: [],
}

/**
 * Writes the files that the image of machines needs from this checkout. `root` is the root folder of the image's file
 * system. Includes Node.js, so that the image has the version that the programs were bundled for.
 */
export async function writeImageFiles(root: string): Promise<void> {
  const filter = seccompFilter(process.arch)
  if (!filter) throw new Error(`there is no system call filter for ${process.arch}`)
  const inRoot = (path: string) => join(root, path)
  await mkdir(inRoot(imageFiles.sandbox), { recursive: true })
  await writeNetworkFiles(inRoot(imageFiles.sandbox))
  await writeFile(inRoot(imageFiles.seccompFilter), filter)
  await writePrograms(agentPrograms, inRoot(imageFiles.programs))
  await writePrograms(containerPrograms, inRoot(imageFiles.container))
  await writePrograms(egressPrograms, inRoot(imageFiles.egress))
  for (const name of appPackages) {
    await cp(folderOfPackage(name), join(inRoot(imageFiles.appPackagesFolder), name), { recursive: true })
  }
  await cp(process.execPath, inRoot(imageFiles.node))
}

async function writePrograms(programs: BundledPrograms, folder: string): Promise<void> {
  const temporary = await mkdtemp(join(tmpdir(), 'berth-image-'))
  try {
    const bundled = await bundlePrograms(programs, temporary)
    await mkdir(dirname(folder), { recursive: true })
    await rm(folder, { recursive: true, force: true })
    await cp(bundled, folder, { recursive: true })
  } finally {
    await rm(temporary, { recursive: true })
  }
}
