import { stat } from 'node:fs/promises'

/** Whether the path exists. Follows links. */
export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
