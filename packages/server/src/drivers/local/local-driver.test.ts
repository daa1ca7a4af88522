import { LocalGround } from '../../testing/local-ground.ts'
import { driverSuite } from '../driver-suite.ts'

driverSuite('local driver', () => LocalGround.open())
