import * as dataFolder from './data-folder-setup.ts'
import * as postgres from './test-postgres-setup.ts'

const setups = [dataFolder, postgres]

/** @public Called by the test runner, before the first file of a run. */
export async function globalSetup(): Promise<void> {
  await Promise.all(setups.map((setup) => setup.globalSetup()))
}

/** @public Called by the test runner, after the last file of a run. */
export async function globalTeardown(): Promise<void> {
  await Promise.all(setups.map((setup) => setup.globalTeardown()))
}
