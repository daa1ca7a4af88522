import type { MachineId } from '@berth/contract/common/ids.ts'
import type { MachineSpec } from './driver.ts'

/** A machine without a browser, with the same isolation and limits as others. */
export function appMachineSpec(id: MachineId): MachineSpec {
  return {
    id,
    isApp: true,
    headless: true,
    stealth: false,
    gpu: false,
    kioskMode: false,
    viewport: { width: 1280, height: 800, refresh_rate: 60 },
    memory: '2GiB',
    chromePolicy: {},
    awaitsProfile: false,
    awaitsExtensions: false,
  }
}
