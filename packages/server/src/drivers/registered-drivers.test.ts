import { LocalTestbed } from '../testing/local-testbed.ts'
import { type DriverName, driverNames } from './driver-names.ts'
import { type DriverTestbed, driverSuite } from './driver-suite.ts'

/** Where the drivers of each kind are tried. */
const testbeds: Readonly<Record<DriverName, () => Promise<DriverTestbed>>> = {
  local: () => LocalTestbed.open(),
}

for (const name of driverNames) driverSuite(`${name} driver`, testbeds[name])
