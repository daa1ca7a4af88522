import { createReadStream } from 'node:fs'
import { policyExtensionPort } from '@berth/contract/agent/agent-protocol.ts'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { ExtensionReference } from '@berth/contract/extensions/extension.ts'
import { sendExtensions } from '../../../agent-link/transfers/send-extensions.ts'
import type { ChromePolicies, Driver, ReachableMachine } from '../../../drivers/driver.ts'
import { checkExtension, type ExtensionService, type StoredExtension } from '../../extensions/extension-service.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { ResolvedSession } from '../records/session-store.ts'
import type { NamedUpload } from './receive-extensions.ts'

interface SessionExtensionsOptions {
  readonly machines: SessionMachines
  readonly driver: Driver
  readonly extensions: ExtensionService
}

/** Covers unpacking, a launch, and the installation of an extension by policy. */
const loadLimitMilliseconds = 60_000
/** The name of Chromium's policy. */
const forcelist = 'ExtensionInstallForcelist'

/** The extensions of sessions: initial ones and those that are loaded later. */
export class SessionExtensions {
  readonly #options: SessionExtensionsOptions

  constructor(options: SessionExtensionsOptions) {
    this.#options = options
  }

  /** Finds the initial extensions of a session. */
  async choose(
    projectId: ProjectId,
    references: readonly ExtensionReference[] | null | undefined,
  ): Promise<readonly StoredExtension[]> {
    return this.#options.extensions.use(projectId, references ?? [])
  }

  /** Sends them to an agent that waits for them. Resolves when its browser has loaded them. */
  async give(machine: ReachableMachine, chosen: readonly StoredExtension[], signal: AbortSignal): Promise<void> {
    const { extensions } = this.#options
    const sent = chosen.map((extension) => ({
      name: extension.name ?? extension.id,
      open: () => extensions.open(extension),
    }))
    await sendExtensions(machine, sent, signal)
  }

  /** Loads uploaded extensions into the running browser: all or none. */
  async load({ id }: ResolvedSession, uploads: readonly NamedUpload[], signal: AbortSignal): Promise<void> {
    const { machines, driver } = this.#options
    const policyIds: string[] = []
    for (const { path, label } of uploads) {
      const { policy } = await checkExtension(path, `${label}.zip_file`)
      if (policy) policyIds.push(policy.id)
    }
    const machine = machines.get(id)
    const limit = AbortSignal.any([signal, AbortSignal.timeout(loadLimitMilliseconds)])
    const sent = uploads.map(({ name, path }) => ({ name, open: async () => createReadStream(path) }))
    if (policyIds.length === 0) return sendExtensions(machine, sent, limit)
    const before = await driver.changePolicies(machine.id, (policies) => withForced(policies, policyIds))
    try {
      await sendExtensions(machine, sent, limit)
    } catch (error) {
      const forcedBefore = (before[forcelist] ?? []) as readonly string[]
      const added = entriesOf(policyIds).filter((entry) => !forcedBefore.includes(entry))
      await driver.changePolicies(machine.id, (policies) => withoutForced(policies, added))
      throw error
    }
  }
}

/** The policies with which Chromium installs the extensions that need one. */
export function policiesWith(policies: ChromePolicies, chosen: readonly StoredExtension[]): ChromePolicies {
  const ids = chosen.flatMap(({ policy_id }) => policy_id ?? [])
  return ids.length === 0 ? policies : withForced(policies, ids)
}

function withForced(policies: ChromePolicies, ids: readonly string[]): ChromePolicies {
  const forced = (policies[forcelist] ?? []) as readonly string[]
  return { ...policies, [forcelist]: [...new Set([...forced, ...entriesOf(ids)])] }
}

function withoutForced(policies: ChromePolicies, entries: readonly string[]): ChromePolicies {
  const forced = (policies[forcelist] ?? []) as readonly string[]
  return { ...policies, [forcelist]: forced.filter((entry) => !entries.includes(entry)) }
}

/** The agent serves them on the loopback of the machine. */
function entriesOf(ids: readonly string[]): readonly string[] {
  return ids.map((id) => `${id};http://127.0.0.1:${policyExtensionPort}/extensions/${id}/update.xml`)
}
