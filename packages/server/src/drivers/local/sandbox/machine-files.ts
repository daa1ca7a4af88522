import { randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { chmod, chown, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'
import { gatewayAddresses } from '@berth/contract/agent/machine/machine-network.ts'
import { settleAll } from '@berth/runtime/async/settle-all.ts'
import type { ServiceUser } from '../../../host/service-user.ts'
import type { ChromePolicies, MachineSpec } from '../../driver.ts'
import { type MachineFolders, makeFolder } from '../machine-folders.ts'

/** Paths inside the machine. */
export const inMachine = {
  home: '/home/kernel',
  run: '/run/kernel',
  egress: '/run/berth/egress',
  node: '/opt/berth/node',
  programs: '/opt/berth/programs',
  agent: '/opt/berth/programs/agent.mjs',
  agentConfig: '/opt/berth/agent.json',
  /** Programs for apps, each under the name of its npm package. */
  appPackages: '/opt/berth/apps/node_modules',
  uv: '/opt/berth/apps/uv',
  // The binary itself: /usr/bin/chromium is a shell script that starts it.
  chromium: '/usr/lib/chromium/chromium',
} as const

export const userName = 'kernel'
export const hostName = 'berth'

/** Writes the read-only files of the machine. Both folders of the machine exist and are empty. */
export async function writeMachineFiles(folders: MachineFolders, spec: MachineSpec, user: MachineUser): Promise<void> {
  await settleAll([
    makeFolder(folders.terminals, 0o755),
    writeSystemFiles(folders.etc, user),
    writePolicies(folders.policies, spec.chromePolicy),
    writeReadable(folders.agentConfig, JSON.stringify(agentConfig(spec))),
  ])
}

/** Creates the writable files of a machine on a host without disk images. */
export async function makeDiskFolder(folders: MachineFolders, user: MachineUser): Promise<void> {
  await makeFolder(folders.disk, 0o711)
  await settleAll([
    makeFolder(folders.home, 0o700).then(() => giveTo(user, folders.home)),
    makeFolder(folders.run, 0o700).then(() => giveTo(user, folders.run)),
    makeTemporaryFolder(folders.temporary),
  ])
}

/** The user of a machine's processes. */
export interface MachineUser extends ServiceUser {
  /**
   * Whether it is a separate user of the host. Otherwise it is berth's own user, and the machine has a user namespace.
   */
  readonly isHostUser: boolean
}

async function giveTo(user: MachineUser, path: string): Promise<void> {
  if (user.isHostUser) await chown(path, user.uid, user.gid)
}

async function makeTemporaryFolder(path: string): Promise<void> {
  await makeFolder(path, 0o1777)
  // An X server that does not run as root needs this folder but does not create it.
  await makeFolder(join(path, '.X11-unix'), 0o1777)
}

async function writeSystemFiles(folder: string, { uid, gid }: MachineUser): Promise<void> {
  await makeFolder(folder, 0o755)
  const files: Record<string, string> = {
    passwd: `root:x:0:0:root:/root:/usr/sbin/nologin\n${userName}:x:${uid}:${gid}::${inMachine.home}:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n`,
    group: `root:x:0:\n${userName}:x:${gid}:\nnogroup:x:65534:\n`,
    hosts: `127.0.0.1 localhost ${hostName}\n::1 localhost\n`,
    hostname: `${hostName}\n`,
    'resolv.conf': `nameserver ${gatewayAddresses.ipv4}\n`,
    'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
    'machine-id': `${randomBytes(16).toString('hex')}\n`,
  }
  await settleAll(Object.entries(files).map(([name, text]) => writeReadable(join(folder, name), text)))
}

const policiesFile = 'session.json'

const machinePolicy = {
  // Chromium's print preview waits for a person and blocks its page. printToPDF is not affected.
  PrintingEnabled: false,
}

/**
 * Synchronous, so that concurrent changes are not lost. Chromium reads every file of the folder, so the new file is
 * written outside of it.
 */
export function changePolicies(
  { policies: folder, newPolicies }: MachineFolders,
  change: (policies: ChromePolicies) => ChromePolicies,
): ChromePolicies {
  const path = join(folder, policiesFile)
  const before = JSON.parse(readFileSync(path, 'utf8')) as ChromePolicies
  writeFileSync(newPolicies, JSON.stringify(change(before)))
  chmodSync(newPolicies, 0o644)
  renameSync(newPolicies, path)
  return before
}

async function writePolicies(folder: string, policy: ChromePolicies): Promise<void> {
  await makeFolder(folder, 0o755)
  await writeReadable(join(folder, policiesFile), JSON.stringify({ ...machinePolicy, ...policy }))
}

/** Readable for the machine's user, whatever umask berth has. */
async function writeReadable(path: string, text: string): Promise<void> {
  await writeFile(path, text)
  await chmod(path, 0o644)
}

function agentConfig(spec: MachineSpec): AgentConfig {
  return {
    contract_version: agentContractVersion,
    ...(spec.isApp && { is_app: true }),
    headless: spec.headless,
    stealth: spec.stealth,
    ...(spec.solvesCaptchas && { solves_captchas: true }),
    gpu: spec.gpu,
    kiosk_mode: spec.kioskMode,
    viewport: spec.viewport,
    awaits_profile: spec.awaitsProfile,
    awaits_extensions: spec.awaitsExtensions,
    home_folder: inMachine.home,
    run_folder: inMachine.run,
    egress_socket: join(inMachine.egress, 'egress.sock'),
    chromium_path: inMachine.chromium,
  }
}
