import { dirname, extname, join } from 'node:path'

/**
 * The path of another program of the agent: it is in the same folder as the agent's own, both as source and in a
 * machine.
 */
export function besideMain(name: string): string {
  const [, main = ''] = process.argv
  return join(dirname(main), `${name}${extname(main)}`)
}
