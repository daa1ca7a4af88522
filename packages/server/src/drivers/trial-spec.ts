import type { MachineId } from '@berth/contract/common/ids.ts'
import type { MachineSpec } from './driver.ts'

/** A machine with which a driver checks whether machines can be started. It has no session. */
export function trialSpec(id: MachineId): MachineSpec {
  return {
    id,
    headless: true,
    stealth: false,
    gpu: false,
    kioskMode: false,
    viewport: { width: 1, height: 1, refresh_rate: 1 },
    memory: '1GiB',
    chromePolicy: {},
    awaitsProfile: false,
    awaitsExtensions: false,
  }
}
