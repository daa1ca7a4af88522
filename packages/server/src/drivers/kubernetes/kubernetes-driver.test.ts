import { test } from 'node:test'
import { KubernetesTestbed, noCluster } from '../../testing/kubernetes-testbed.ts'
import { driverSuite } from '../driver-suite.ts'

if (noCluster === undefined) driverSuite('kubernetes driver', () => KubernetesTestbed.open())
else test('kubernetes driver', { skip: noCluster }, () => {})
