import { rm } from 'node:fs/promises'
import { createDataFolderTemplate } from './test-postgres.ts'

/**
 * The variable with the folder that end-to-end tests copy for a new berth. Without it, each berth makes a first start.
 */
const dataFolderVariable = 'BERTH_TEST_DATA_FOLDER'

let folder: string | undefined

/** @public Called by the test runner, before the first file of a run. */
export async function globalSetup(): Promise<void> {
  folder = await createDataFolderTemplate()
  process.env[dataFolderVariable] = folder
}

/** @public Called by the test runner, after the last file of a run. */
export async function globalTeardown(): Promise<void> {
  Reflect.deleteProperty(process.env, dataFolderVariable)
  if (folder !== undefined) await rm(folder, { recursive: true, force: true })
}
