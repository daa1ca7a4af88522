import { LocalTestbed } from '../../testing/local-testbed.ts'
import { driverSuite } from '../driver-suite.ts'

driverSuite('local driver', () => LocalTestbed.open())
