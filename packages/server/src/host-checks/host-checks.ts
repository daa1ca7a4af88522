import { StartError } from '../start-error.ts'
import { boundChecks } from './bound-checks.ts'
import { type CheckTarget, failure, type HostCheck, ok, type Verdict } from './host-check.ts'
import { namespaceChecks } from './namespace-checks.ts'
import { networkCheck } from './network-check.ts'
import { programChecks, programPresenceChecks } from './program-checks.ts'
import { resourceChecks } from './resource-checks.ts'

const minNodeMajor = 24

const nodeCheck: HostCheck = { name: 'Node.js', run: async () => judgeNode(process.versions.node) }

export function judgeNode(version: string): Verdict {
  const major = Number(version.split('.', 1)[0])
  if (major >= minNodeMajor) return ok(version)
  return failure(
    `${version}; berth needs ${minNodeMajor} or newer`,
    'start berth by ./berth, which brings its own Node.js',
  )
}

/** Every requirement of berth, in the order in which they should be fixed. */
export const hostChecks: readonly HostCheck<[CheckTarget]>[] = [
  nodeCheck,
  ...programChecks,
  ...namespaceChecks,
  networkCheck,
  ...boundChecks,
  ...resourceChecks,
]

export interface Finding {
  readonly name: string
  readonly verdict: Verdict
}

/** Runs all checks in parallel. Findings are in the order of the checks. */
export async function runHostChecks(target: CheckTarget): Promise<readonly Finding[]> {
  return Promise.all(hostChecks.map(async ({ name, run }) => ({ name, verdict: await run(target) })))
}

/** Like `runHostChecks`, for a running server: it uses the port and the data folder itself. */
export async function examineHost(target: CheckTarget): Promise<readonly Finding[]> {
  const checks = hostChecks.filter(({ name }) => name !== 'Port' && name !== 'Data folder')
  return Promise.all(checks.map(async ({ name, run }) => ({ name, verdict: await run(target) })))
}

/**
 * Throws a StartError for the first unmet requirement without which no session can start. Takes about 30 ms, because it
 * only checks what the server would not notice itself before the first session. The server checks port and data folder
 * when it opens them.
 */
export async function requireHost(): Promise<void> {
  const checks = [...programPresenceChecks, ...namespaceChecks, networkCheck]
  const findings = await Promise.all(checks.map(async ({ name, run }) => ({ name, verdict: await run() })))
  for (const { name, verdict } of findings) {
    if (verdict.state !== 'failure') continue
    throw new StartError(`${name}: ${verdict.fact}. To fix it: ${verdict.cure} (./berth doctor prints more)`, 69)
  }
}
