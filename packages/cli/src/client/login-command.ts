import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { getAuthContext } from '@berth/contract/auth/auth-endpoints.ts'
import type { Command } from 'commander'
import { ApiClient } from '../api/api-client.ts'
import { ApiFailure } from '../api/api-failure.ts'
import { withExample } from '../api/command-examples.ts'
import { printReply } from '../api/print-reply.ts'
import { textOf } from '../api/request-body.ts'
import { defaultUrl, readSavedServers, writeSavedServers } from '../api/saved-servers.ts'
import { printLine } from '../output.ts'

interface LoginFlags {
  readonly name: string
  readonly apiKey?: string
  readonly project?: string
}

export function addLoginCommands(program: Command): void {
  const loginCommand = program
    .command('login [url]')
    .summary('store the address and the API key of a berth server')
    .description(
      `Checks the key, and stores it in a file that only you can read. Other commands use the last one. The address is ${defaultUrl} by default.`,
    )
    .option('--name <name>', 'a name for it, for --server', 'default')
    .option('--api-key <key>', 'the key; @path reads a file, @- standard input (default: asks for it)')
    .option('--project <id or name>', 'the project that commands use by default')
    .action(login)
  withExample(loginCommand, 'login https://berth.example.com --api-key @key.txt')

  const logoutCommand = program
    .command('logout [name]')
    .summary('forget a stored berth')
    .action(async (given?: string) => {
      const { current, servers } = await readSavedServers()
      const name = given ?? current
      if (name === undefined || !servers[name])
        throw new ApiFailure(`no server is stored as ${name ?? 'default'}`, 'usage')
      const { [name]: _forgotten, ...others } = servers
      const next = current === name ? Object.keys(others)[0] : current
      await writeSavedServers({ ...(next !== undefined && { current: next }), servers: others })
      printLine(`forgot ${name}`)
    })

  withExample(logoutCommand, 'logout staging')

  const serversCommand = program
    .command('servers [name]')
    .summary('list the stored servers, or choose the one that commands use')
    .action(async (name?: string) => {
      const saved = await readSavedServers()
      if (name !== undefined) {
        if (!saved.servers[name]) throw new ApiFailure(`no server is stored as ${name}`, 'usage')
        await writeSavedServers({ ...saved, current: name })
      }
      const current = name ?? saved.current
      const rows = Object.entries(saved.servers).map(([each, { url, project }]) => ({
        name: each,
        url,
        project: project ?? null,
        current: each === current,
      }))
      printReply(rows, 'table')
    })
  withExample(serversCommand, 'servers staging')
}

async function login(url: string | undefined, { name, apiKey, project }: LoginFlags): Promise<void> {
  const address = (url ?? process.env.BERTH_URL ?? defaultUrl).replace(/\/+$/, '')
  if (!/^https?:\/\//.test(address)) throw new ApiFailure('the address must start with http:// or https://', 'usage')
  const key = (apiKey === undefined ? await askForKey() : await textOf(apiKey)).trim()
  const client = new ApiClient({ url: address, apiKey: key, project })
  const context = await client.call<{ organization?: { name?: string } }>(getAuthContext)
  const saved = await readSavedServers()
  const server = { url: address, apiKey: key, ...(project !== undefined && { project }) }
  await writeSavedServers({ current: name, servers: { ...saved.servers, [name]: server } })
  const organization = context.organization?.name
  printLine(`logged in to ${address}${organization ? `, organization ${organization}` : ''}`)
}

async function askForKey(): Promise<string> {
  if (!process.stdin.isTTY) throw new ApiFailure('pass the key with --api-key @- or --api-key @file', 'usage')
  // Hides the input.
  const output = new Writable({ write: (_chunk, _encoding, done) => done() })
  const questions = createInterface({ input: process.stdin, output, terminal: true })
  process.stderr.write('API key: ')
  try {
    return await questions.question('')
  } finally {
    questions.close()
    process.stderr.write('\n')
  }
}
