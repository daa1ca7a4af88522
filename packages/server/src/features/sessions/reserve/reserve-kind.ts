import type { ResolvedViewport } from '@berth/contract/browsers/viewport.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { appMachineSpec } from '../../../drivers/app-machine-spec.ts'
import type { MachineSpec } from '../../../drivers/driver.ts'
import { defaultMemory } from '../create/default-memory.ts'
import { viewportOf, windowOf } from '../machines/session-viewport.ts'

/**
 * Kinds differ in the settings that need a launch of Chromium. Machines for profiles have no running Chromium yet: it
 * is launched with the profile, the policies and the mode of the session. Machines for apps never have one.
 */
export const reserveKinds = [
  'headless',
  'headful',
  'headless-stealth',
  'headful-stealth',
  'headless-profile',
  'headful-profile',
  'app',
] as const
export type ReserveKind = (typeof reserveKinds)[number]

/** Why a create claims no machine of the reserve. */
export type ReserveMiss =
  /** Chromium only installs extensions by policies that exist when it is launched. */
  | 'policies'
  /** The reserve has no machines with a GPU. */
  | 'gpu'
  | 'memory'
  /** No machine of its kind is ready. */
  | 'empty'
  /** The machine did not accept its settings. */
  | 'failed'

/** What a create requires of a machine. */
export type MachineNeeds = Pick<
  MachineSpec,
  'headless' | 'stealth' | 'gpu' | 'memory' | 'chromePolicy' | 'awaitsProfile'
> & {
  /** Whether Chromium must install some of its extensions by policy. */
  readonly installsByPolicy: boolean
}

export function kindFor(needs: MachineNeeds): ReserveKind | ReserveMiss {
  const { headless, stealth, gpu, memory, chromePolicy, awaitsProfile, installsByPolicy } = needs
  if (gpu) return 'gpu'
  if (memory !== defaultMemory(headless)) return 'memory'
  if (installsByPolicy) return 'policies'
  const display = headless ? 'headless' : 'headful'
  // Chromium reads both at its launch, which can also select stealth mode.
  if (awaitsProfile || Object.keys(chromePolicy).length > 0) return `${display}-profile`
  return stealth ? `${display}-stealth` : display
}

/** Whether machines of the kind have not launched Chromium yet, but wait for a profile or policies. */
export function isUnlaunched(kind: ReserveKind): boolean {
  return kind.endsWith('-profile')
}

export function isKind(found: ReserveKind | ReserveMiss): found is ReserveKind {
  return (reserveKinds as readonly string[]).includes(found)
}

const reserveWindow = windowOf(viewportOf(undefined, false))

/** Whether machines of the reserve have a window of this size. */
export function isReserveWindow(viewport: ResolvedViewport): boolean {
  const { width, height, refresh_rate } = windowOf(viewport)
  return width === reserveWindow.width && height === reserveWindow.height && refresh_rate === reserveWindow.refresh_rate
}

/** The specification of a machine of the reserve: that of a session with default settings. */
export function reserveSpec(id: MachineId, kind: ReserveKind): MachineSpec {
  if (kind === 'app') return { ...appMachineSpec(id), hasLowPriority: true }
  const headless = kind.startsWith('headless')
  return {
    id,
    headless,
    stealth: kind.endsWith('-stealth'),
    gpu: false,
    kioskMode: false,
    viewport: reserveWindow,
    memory: defaultMemory(headless),
    chromePolicy: {},
    awaitsProfile: isUnlaunched(kind),
    awaitsExtensions: false,
    hasLowPriority: true,
  }
}
