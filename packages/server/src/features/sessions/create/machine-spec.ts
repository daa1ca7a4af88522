import type { BrowserRequest } from '@berth/contract/browsers/browser.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { MachineSpec } from '../../../drivers/driver.ts'
import type { StoredExtension } from '../../extensions/extension-service.ts'
import { policiesWith } from '../launch-inputs/session-extensions.ts'
import type { ReferredProfile } from '../launch-inputs/session-profiles.ts'
import { windowOf } from '../machines/session-viewport.ts'
import type { Session } from '../records/session.ts'
import type { MachineNeeds } from '../reserve/reserve-kind.ts'
import { defaultMemory } from './default-memory.ts'

/** The inputs of a session's start in addition to its request. */
export interface LaunchInputs {
  readonly extensions: readonly StoredExtension[]
  readonly profile: ReferredProfile | undefined
  /** Certificates of proxies that the browser must trust. */
  readonly certificates: readonly string[]
}

/** The specification of a new session's machine. */
export function machineSpec(session: Session, request: BrowserRequest, inputs: LaunchInputs): MachineSpec {
  const { extensions, profile } = inputs
  return {
    id: session.machine_id,
    headless: session.headless,
    stealth: session.stealth,
    gpu: session.gpu,
    kioskMode: session.kiosk_mode,
    viewport: windowOf(session.viewport),
    memory: session.memory,
    chromePolicy: policiesOf(request, inputs),
    awaitsExtensions: extensions.length > 0,
    awaitsProfile: profile?.hasState ?? false,
  }
}

/** The requirements of a request that not every machine meets. */
export function needsOf(request: BrowserRequest, inputs: LaunchInputs): MachineNeeds {
  const { headless, stealth, gpu, memory = defaultMemory(headless) } = request
  const awaitsProfile = inputs.profile?.hasState ?? false
  const installsByPolicy = inputs.extensions.some(({ policy_id }) => policy_id !== null)
  return { headless, stealth, gpu, memory, chromePolicy: policiesOf(request, inputs), awaitsProfile, installsByPolicy }
}

function policiesOf({ chrome_policy = {} }: BrowserRequest, { certificates, extensions }: LaunchInputs) {
  return policiesWith(trusting(certificates, chrome_policy), extensions)
}

/** Adds trusted certificates to the policy, which may contain the caller's own. */
function trusting(certificates: readonly string[], policy: Readonly<Record<string, unknown>>) {
  if (certificates.length === 0) return policy
  const { CACertificates: others } = policy
  return { ...policy, CACertificates: [...(Array.isArray(others) ? others : []), ...certificates] }
}

/** Chromium exits because of a policy of the wrong type or an invalid combination, which is an error of the request. */
export function attributeError(error: unknown, { chrome_policy = {} }: BrowserRequest): unknown {
  const hasNotStarted = error instanceof BerthError && error.code === 'session_start_failed'
  if (!hasNotStarted || Object.keys(chrome_policy).length === 0) return error
  const reason = 'the browser does not start with these policies.'
  return new BerthError('field_not_supported', { field: 'chrome_policy', reason }, { cause: error })
}
