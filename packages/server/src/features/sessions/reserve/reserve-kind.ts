import type { ResolvedViewport } from '@berth/contract/browsers/viewport.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { appMachineSpec } from '../../../drivers/app-machine-spec.ts'
import type { MachineSpec } from '../../../drivers/driver.ts'
import { defaultMemory } from '../create/default-memory.ts'
import { viewportOf, windowOf } from '../machines/session-viewport.ts'

/**
 * Machines differ in what only a launch of Chromium can set. Those for profiles have no Chromium yet: it is launched with
 * the profile, the policies and the mode of the session. Those for apps never have one.
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

/** Why a create takes no machine of the reserve. */
export type ReserveMiss =
  /** Chromium installs extensions by policies that it finds when it is launched. */
  | 'policies'
  /** There is no kind for it. */
  | 'gpu'
  | 'memory'
  /** There is no machine of its kind now. */
  | 'empty'
  /** The machine did not do what it was told. */
  | 'failed'

/** What a create asks of a machine. */
export type MachineNeeds = Pick<
  MachineSpec,
  'headless' | 'stealth' | 'gpu' | 'memory' | 'chromePolicy' | 'awaitsProfile'
> & {
  /** Whether Chromium is to install some of its extensions by policies. */
  readonly installsByPolicy: boolean
}

export function kindFor(needs: MachineNeeds): ReserveKind | ReserveMiss {
  const { headless, stealth, gpu, memory, chromePolicy, awaitsProfile, installsByPolicy } = needs
  if (gpu) return 'gpu'
  if (memory !== defaultMemory(headless)) return 'memory'
  if (installsByPolicy) return 'policies'
  const display = headless ? 'headless' : 'headful'
  // Chromium takes both when it is launched, and may be a stealth browser then.
  if (awaitsProfile || Object.keys(chromePolicy).length > 0) return `${display}-profile`
  return stealth ? `${display}-stealth` : display
}

/** Whether machines of the kind have not launched Chromium yet: they wait for a profile, or for policies. */
export function isUnlaunched(kind: ReserveKind): boolean {
  return kind.endsWith('-profile')
}

export function isKind(found: ReserveKind | ReserveMiss): found is ReserveKind {
  return (reserveKinds as readonly string[]).includes(found)
}

const reserveWindow = windowOf(viewportOf(undefined, false))

/** Whether machines of the reserve have a window of that size. */
export function isReserveWindow(viewport: ResolvedViewport): boolean {
  const { width, height, refresh_rate } = windowOf(viewport)
  return width === reserveWindow.width && height === reserveWindow.height && refresh_rate === reserveWindow.refresh_rate
}

/** What a machine of the reserve is started with: as for a session that asks for nothing else. */
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
