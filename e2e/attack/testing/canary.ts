import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const program = new URL('canary-program.ts', import.meta.url).pathname

/** Servers in a network namespace that report what reached them. */
export interface Canary extends AsyncDisposable {
  /** `tcp <address> <port>`, `udp <port>` and `dns <name> <type>`, in order of arrival. */
  readonly reached: string[]
  /** Resolves when such a line has arrived. All earlier ones have arrived then. */
  until(line: string): Promise<void>
}

export async function startCanary(wrapper: readonly string[], listeners: readonly string[]): Promise<Canary> {
  const [command = '', ...rest] = [...wrapper, process.execPath, program, ...listeners]
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  await once(lines, 'line')
  const reached: string[] = []
  lines.on('line', (line) => reached.push(line))

  return {
    reached,
    async until(line) {
      while (!reached.includes(line)) await once(lines, 'line')
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await once(child, 'exit')
    },
  }
}
