import type { MachineId } from '@berth/contract/common/ids.ts'
import type { MachineSpec } from '../../../drivers/driver.ts'
import { defaultMemory } from '../create/default-memory.ts'
import { viewportOf, windowOf } from '../machines/session-viewport.ts'

/** Machines differ in what only a launch of Chromium can set. */
export const reserveKinds = ['headless', 'headful', 'headless-stealth', 'headful-stealth'] as const
export type ReserveKind = (typeof reserveKinds)[number]

/** Why a create takes no machine of the reserve. */
export type ReserveMiss =
  /** Chromium takes policies, and certificates, when it is launched. */
  | 'policies'
  /** There is no kind for it. */
  | 'gpu'
  | 'memory'
  /** There is no machine of its kind now. */
  | 'empty'
  /** The machine did not do what it was told. */
  | 'failed'

/** What a create asks of a machine. */
export type MachineNeeds = Pick<MachineSpec, 'headless' | 'stealth' | 'gpu' | 'memory' | 'chromePolicy'>

export function kindFor({ headless, stealth, gpu, memory, chromePolicy }: MachineNeeds): ReserveKind | ReserveMiss {
  if (gpu) return 'gpu'
  if (memory !== defaultMemory(headless)) return 'memory'
  if (Object.keys(chromePolicy).length > 0) return 'policies'
  return `${headless ? 'headless' : 'headful'}${stealth ? '-stealth' : ''}`
}

export function isKind(found: ReserveKind | ReserveMiss): found is ReserveKind {
  return (reserveKinds as readonly string[]).includes(found)
}

/** What a machine of the reserve is started with: as for a session that asks for nothing else. */
export function reserveSpec(id: MachineId, kind: ReserveKind): MachineSpec {
  const headless = kind.startsWith('headless')
  return {
    id,
    headless,
    stealth: kind.endsWith('-stealth'),
    gpu: false,
    kioskMode: false,
    viewport: windowOf(viewportOf(undefined, false)),
    memory: defaultMemory(headless),
    chromePolicy: {},
    awaitsProfile: false,
    awaitsExtensions: false,
    hasLowPriority: true,
  }
}
