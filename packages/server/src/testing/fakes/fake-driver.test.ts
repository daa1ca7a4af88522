import { driverSuite } from '../../drivers/driver-suite.ts'
import { FakeDriver, FakeHost } from './fake-driver.ts'

driverSuite('fake driver', async () => {
  const host = await FakeHost.open()
  return {
    openDriver: async () => new FakeDriver(host),
    killMachine: async (machineId) => host.agentOf(machineId).kill(),
    remains: () => host.remains(),
    close: () => host.close(),
  }
})
