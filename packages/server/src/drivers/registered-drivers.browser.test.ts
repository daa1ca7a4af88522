import { LocalTestbed } from '../testing/machines/local-testbed.ts'
import { driverSuite } from './driver-suite.ts'

// The Kubernetes driver needs a cluster: see kubernetes/kubernetes-driver.browser.test.ts.
driverSuite('local driver', () => LocalTestbed.open())
