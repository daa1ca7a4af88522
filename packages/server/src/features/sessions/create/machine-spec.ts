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

/** What a session starts with besides its request. */
export interface LaunchInputs {
  readonly extensions: readonly StoredExtension[]
  readonly profile: ReferredProfile | undefined
  /** Of proxies that the browser is to trust. */
  readonly certificates: readonly string[]
}

/** What the machine of a new session is started with. */
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

/** What a request asks of its machine that not every machine has. */
export function needsOf(request: BrowserRequest, inputs: LaunchInputs): MachineNeeds {
  const { headless, stealth, gpu, memory = defaultMemory(headless) } = request
  const awaitsProfile = inputs.profile?.hasState ?? false
  const installsByPolicy = inputs.extensions.some(({ policy_id }) => policy_id !== null)
  return { headless, stealth, gpu, memory, chromePolicy: policiesOf(request, inputs), awaitsProfile, installsByPolicy }
}

function policiesOf({ chrome_policy = {} }: BrowserRequest, { certificates, extensions }: LaunchInputs) {
  return policiesWith(trusting(certificates, chrome_policy), extensions)
}

/** Chromium has a policy for certificates that it is to trust; a caller may have some of its own. */
function trusting(certificates: readonly string[], policy: Readonly<Record<string, unknown>>) {
  if (certificates.length === 0) return policy
  const { CACertificates: others } = policy
  return { ...policy, CACertificates: [...(Array.isArray(others) ? others : []), ...certificates] }
}

/** Chromium takes a policy of the wrong kind, or some pairs of them, for a reason to end: that is a fault of the request. */
export function attributeError(error: unknown, { chrome_policy = {} }: BrowserRequest): unknown {
  const hasNotStarted = error instanceof BerthError && error.code === 'session_start_failed'
  if (!hasNotStarted || Object.keys(chrome_policy).length === 0) return error
  const reason = 'the browser does not start with these policies.'
  return new BerthError('field_not_supported', { field: 'chrome_policy', reason }, { cause: error })
}
