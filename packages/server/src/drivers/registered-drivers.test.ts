import { LocalTestbed } from '../testing/machines/local-testbed.ts'
import { driverSuite } from './driver-suite.ts'

// That of Kubernetes needs a cluster: kubernetes/kubernetes-driver.test.ts.
driverSuite('local driver', () => LocalTestbed.open())
