import { stat } from 'node:fs/promises'

/** Whether there is anything at the path, links followed. */
export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
