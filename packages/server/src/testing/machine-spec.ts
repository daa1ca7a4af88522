import { newId } from '@berth/contract/common/ids.ts'
import type { MachineSpec } from '../drivers/driver.ts'

/** The specification of a small headless machine for a new session. */
export function machineSpec(changes: Partial<MachineSpec> = {}): MachineSpec {
  return {
    sessionId: newId('session', new Date()),
    headless: true,
    stealth: false,
    gpu: false,
    kioskMode: false,
    viewport: { width: 1280, height: 800, refresh_rate: 60 },
    memory: '1GiB',
    startUrl: undefined,
    chromePolicy: {},
    awaitsProfile: false,
    awaitsExtensions: false,
    ...changes,
  }
}
