import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { machineOf } from '../../testing/machine-of.ts'

const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: '/home/kernel', LANG: 'C.UTF-8' }
const noRights = ['--clear-groups', '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all']

/**
 * Runs commands like a process of a session's machine: in its namespaces, as its user, without capabilities. The
 * machine's seccomp filter cannot be entered from outside. packages/server/src/drivers/local tests it from inside.
 */
export class MachineShell {
  readonly #pid: number
  readonly #uid: string

  private constructor(pid: number, uid: string) {
    this.#pid = pid
    this.#uid = uid
  }

  static async enter(sessionId: string): Promise<MachineShell> {
    const pid = await findAgent(sessionId)
    const uid = /^Uid:\t(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]
    if (uid === undefined || uid === '0') throw new Error(`the agent of ${sessionId} runs as ${uid}`)
    return new MachineShell(pid, uid)
  }

  /** Returns the output of the command, including errors. */
  async run(command: readonly string[], input = ''): Promise<string> {
    const user = [`--reuid=${this.#uid}`, `--regid=${this.#uid}`, ...noRights]
    const enter = [
      '--target',
      String(this.#pid),
      '--all',
      '--wdns=/home/kernel',
      '--',
      '/usr/bin/setpriv',
      ...user,
      '--',
    ]
    const child = spawn('nsenter', [...enter, ...command], { env: environment, stdio: ['pipe', 'pipe', 'pipe'] })
    child.stdin.on('error', () => {}) // The command may end before it has read everything. Its output gives the reason.
    child.stdin.end(input)
    const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
    return `${output}${errors}`.trim()
  }

  shell(script: string, input = ''): Promise<string> {
    return this.run(['/bin/bash', '-c', script], input)
  }

  /** Runs a module in the machine's Node.js, which writes JSON. */
  async node<Result>(script: string): Promise<Result> {
    const output = await this.run(['/opt/berth/node', '--input-type=module', '-e', script])
    try {
      return JSON.parse(output) as Result
    } catch (cause) {
      throw new Error(`the script wrote: ${output}`, { cause })
    }
  }
}

/** Identifies the agent by its program and its mounts. */
async function findAgent(sessionId: string): Promise<number> {
  for (const name of await readdir('/proc')) {
    const [commandLine, mounts] = await Promise.all(['cmdline', 'mountinfo'].map((file) => read(name, file)))
    if (commandLine?.startsWith('/opt/berth/node') && mounts?.includes(`machines/${machineOf(sessionId)}/`))
      return Number(name)
  }
  throw new Error(`there is no agent of ${sessionId}`)
}

async function read(name: string, file: string): Promise<string> {
  return /^\d+$/.test(name) ? readFile(`/proc/${name}/${file}`, 'utf8').catch(() => '') : ''
}
