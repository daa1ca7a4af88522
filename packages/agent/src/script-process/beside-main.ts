import { dirname, extname, join } from 'node:path'

/** The path of another of the agent's programs: it has a file beside the agent's own, as source and in a machine. */
export function besideMain(name: string): string {
  const [, main = ''] = process.argv
  return join(dirname(main), `${name}${extname(main)}`)
}
