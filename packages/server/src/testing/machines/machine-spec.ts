import { newId } from '@berth/contract/common/ids.ts'
import type { MachineSpec } from '../../drivers/driver.ts'

/** A small headless machine. */
export function machineSpec(changes: Partial<MachineSpec> = {}): MachineSpec {
  return {
    id: newId('machine', new Date()),
    headless: true,
    stealth: false,
    gpu: false,
    kioskMode: false,
    viewport: { width: 1280, height: 800, refresh_rate: 60 },
    memory: '1GiB',
    chromePolicy: {},
    awaitsProfile: false,
    awaitsExtensions: false,
    ...changes,
  }
}
