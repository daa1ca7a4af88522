import {
  killProcess,
  resizeTerminal,
  spawnProcess,
  streamProcessOutput,
  writeProcessInput,
} from '@berth/contract/agent/operations/process-operations.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import type { Command } from 'commander'
import { ApiClient } from '../api/api-client.ts'
import { ApiFailure } from '../api/api-failure.ts'
import { withExample } from '../api/command-examples.ts'
import { commandGroup } from '../api/command-group.ts'
import { type ApiFlags, withApiFlags } from '../api/operation-commands.ts'

type Output = { readonly data_b64: string } | { readonly event: 'exit'; readonly exit_code: number }

export function addShellCommand(program: Command): void {
  const command = commandGroup(program, ['browsers'])
    .command('shell <id_or_name> [command] [args...]')
    .summary('open a terminal in a session')
    .description('Runs bash, or another program, in a terminal of the session. Ends with the exit code of the program.')
  withExample(withApiFlags(command).action(openShell), 'browsers shell shop')
}

async function openShell(
  id: string,
  program: string | undefined,
  args: readonly string[],
  flags: ApiFlags,
): Promise<void> {
  const { stdin, stdout } = process
  if (!stdin.isTTY) throw new ApiFailure('a shell needs a terminal: use berth browsers process exec', 'usage')
  const client = await ApiClient.open(flags)
  const size = () => ({ rows: stdout.rows || 24, cols: stdout.columns || 80 })
  const command = { command: program ?? 'bash', args: program ? args : ['-l'], allocate_tty: true, ...size() }
  const spawned = await client.call<{ process_id: string }>(spawnProcess as Endpoint, {
    params: { id_or_name: id },
    body: { ...command, env: { TERM: process.env.TERM ?? 'xterm-256color' } },
  })
  const params = { id_or_name: id, process_id: spawned.process_id }

  // One request at a time keeps keys in order. Input that arrives meanwhile is sent with the next one.
  let typed: Buffer[] = []
  let isSending = false
  const send = async () => {
    if (isSending) return
    isSending = true
    while (typed.length > 0) {
      const data = Buffer.concat(typed)
      typed = []
      await client.send(writeProcessInput as Endpoint, { params, body: { data_b64: data.toString('base64') } })
    }
    isSending = false
  }
  const onInput = (chunk: Buffer) => {
    typed.push(chunk)
    // The program may have ended: its exit code arrives on the stream.
    void send().catch(() => undefined)
  }
  const onResize = () => void client.send(resizeTerminal as Endpoint, { params, body: size() }).catch(() => undefined)

  stdin.setRawMode(true).resume().on('data', onInput)
  stdout.on('resize', onResize)
  let hasEnded = false
  try {
    for await (const output of client.follow<Output>(streamProcessOutput as Endpoint, { params })) {
      if ('data_b64' in output) stdout.write(Buffer.from(output.data_b64, 'base64'))
      else {
        hasEnded = true
        process.exitCode = output.exit_code < 0 ? 1 : output.exit_code
      }
    }
  } finally {
    stdin.setRawMode(false).pause().off('data', onInput)
    stdout.off('resize', onResize)
    if (!hasEnded)
      await client.send(killProcess as Endpoint, { params, body: { signal: 'KILL' } }).catch(() => undefined)
  }
}
