import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import {
  createDeployment,
  createInvocation,
  deleteInvocationBrowsers,
  followDeployment,
  followInvocation,
  getInvocation,
  listApps,
  updateInvocation,
} from '@berth/contract/apps/app-endpoints.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import type { Command } from 'commander'
import ignore from 'ignore'
import pc from 'picocolors'
import { ApiClient } from '../api/api-client.ts'
import { ApiFailure } from '../api/api-failure.ts'
import { withExample } from '../api/command-examples.ts'
import { type ApiFlags, withApiFlags } from '../api/operation-commands.ts'
import { printReply } from '../api/print-reply.ts'
import { fileOf, pairOf, textOf } from '../api/request-body.ts'
import { asWholeNumber, printLine } from '../output.ts'
import { type AppStatus, finish, followAcross, followToEnd } from './follow-to-end.ts'
import { zipFolder } from './zip-folder.ts'

interface DeployFlags extends ApiFlags {
  readonly version: string
  readonly force?: boolean
  readonly env: readonly string[]
}

interface InvokeFlags extends ApiFlags {
  readonly payload?: string
  readonly version: string
  readonly sync?: boolean
  readonly timeout?: number
}

interface LogsFlags extends ApiFlags {
  readonly follow?: boolean
  readonly since?: string
  readonly version: string
  readonly invocation?: string
}

export function addAppCommands(program: Command): void {
  const deployCommand = withApiFlags(
    program
      .command('deploy <entrypoint>')
      .summary('deploy the folder of an app')
      .description(
        'Uploads the folder of the entrypoint, except files in .gitignore, and follows the build to its end.',
      )
      .option('--version <version>', 'the version of the app', 'latest')
      .option('--force', 'replace an existing version')
      .option('--env <NAME=value>', 'an environment variable; may be repeated', collect, []),
  ).action(deploy)
  withExample(deployCommand, 'deploy app/index.ts --env TOKEN=secret')

  const invokeCommand = withApiFlags(
    program
      .command('invoke <app> <action>')
      .summary('invoke an action of an app')
      .description('Prints its logs and its result. Ctrl-C cancels it.')
      .option('--payload <json>', 'its input; @path reads a file, @- standard input')
      .option('--version <version>', 'the version of the app', 'latest')
      .option('--timeout <seconds>', 'the maximum duration', asWholeNumber)
      .option('--sync', 'wait for the result in one request, at most 100 seconds'),
  ).action(invoke)
  withExample(invokeCommand, `invoke shop buy --payload '{"item":1}'`)

  const logsCommand = withApiFlags(
    program
      .command('logs <app>')
      .summary('print the logs of an app')
      .option('-f, --follow', 'continue with new lines')
      .option('--since <time or duration>', 'such as 10m, or a time')
      .option('--version <version>', 'the version of the app', 'latest')
      .option('-i, --invocation <id>', 'logs of one invocation'),
  ).action(printLogs)
  withExample(logsCommand, 'logs shop --follow')
}

async function deploy(entrypoint: string, { version, force, env, output, ...flags }: DeployFlags): Promise<void> {
  const variables = env.map((pair) => pairOf('env', pair))
  const client = await ApiClient.open(flags)
  const folder = await mkdtemp(join(tmpdir(), 'berth-deploy-'))
  try {
    const archive = join(folder, 'app.zip')
    const files = await filesOfApp(entrypoint)
    await zipFolder(files, archive)
    printLine(`uploading ${files.length} files`)
    const form = new FormData()
    form.append('file', await fileOf(archive))
    form.append('entrypoint_rel_path', basename(entrypoint))
    form.append('version', version)
    form.append('force', String(force === true))
    for (const [name, value] of variables) form.append(`env_vars[${name}]`, value)
    const { id } = await client.call<AppStatus>(createDeployment as Endpoint, { body: form })
    await followToEnd(client, followDeployment as Endpoint, id, output)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** The files of the folder that contains the entrypoint, except those that its .gitignore and .ignore exclude. */
async function filesOfApp(entrypoint: string): Promise<readonly { readonly path: string; readonly name: string }[]> {
  const found = await stat(entrypoint).catch(() => undefined)
  if (!found?.isFile()) throw new ApiFailure(`${entrypoint} is not a file`, 'noInput')
  const folder = dirname(entrypoint)
  const rules = ignore().add(['.git', 'node_modules'])
  for (const name of ['.gitignore', '.ignore']) {
    rules.add(await readFile(join(folder, name), 'utf8').catch(() => ''))
  }
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path, name: relative(folder, path) }))
    .filter(({ name }) => !rules.ignores(name))
}

async function invoke(app: string, action: string, { output, ...flags }: InvokeFlags): Promise<void> {
  const client = await ApiClient.open(flags)
  const payload = flags.payload === undefined ? undefined : await textOf(flags.payload)
  const body = {
    app_name: app,
    action_name: action,
    version: flags.version,
    ...(payload !== undefined && { payload }),
    async: !flags.sync,
    ...(flags.timeout !== undefined && { async_timeout_seconds: flags.timeout }),
  }
  const invocation = await client.call<AppStatus>(createInvocation as Endpoint, { body })
  if (flags.sync) return finish(invocation, output)
  const params = { id: invocation.id }
  const cancel = async () => {
    printLine('cancelling the invocation')
    const end = { status: 'failed', output: JSON.stringify({ error: 'Invocation cancelled by user' }) }
    await client.send(updateInvocation as Endpoint, { params, body: end }).catch(() => undefined)
    await client.send(deleteInvocationBrowsers as Endpoint, { params }).catch(() => undefined)
    process.exit(130)
  }
  process.once('SIGINT', () => void cancel())
  await followToEnd(client, followInvocation as Endpoint, invocation.id, output)
}

async function printLogs(app: string, { follow, version, invocation, ...flags }: LogsFlags): Promise<void> {
  const since = flags.since ?? (follow ? '5s' : '5m')
  const client = await ApiClient.open(flags)
  const { stream, id } = invocation
    ? {
        stream: followInvocation,
        id: (await client.call<AppStatus>(getInvocation as Endpoint, { params: { id: invocation } })).id,
      }
    : { stream: followDeployment, id: await deploymentOf(client, app, version) }
  const quiet = new AbortController()
  // Without --follow, existing lines arrive immediately.
  let timer: NodeJS.Timeout | undefined
  const restart = () => {
    clearTimeout(timer)
    if (!follow) timer = setTimeout(() => quiet.abort(), quietMilliseconds)
  }
  try {
    const options = { since, signal: quiet.signal, onOpen: restart }
    for await (const event of followAcross(client, stream as Endpoint, id, options)) {
      if (event.event !== 'log') continue
      restart()
      if (flags.output === 'json') printReply(event, 'json')
      else process.stdout.write(`${pc.dim(event.timestamp)} ${event.message}\n`)
    }
  } catch (error) {
    if (!quiet.signal.aborted) throw error
  } finally {
    clearTimeout(timer)
  }
}

const quietMilliseconds = 3_000

async function deploymentOf(client: ApiClient, app: string, version: string): Promise<string> {
  const found = await client.call<readonly { deployment: string }[]>(listApps as Endpoint, {
    query: { app_name: app, version },
  })
  if (!found[0]) throw new ApiFailure(`there is no app ${app} with the version ${version}`, 'noInput')
  return found[0].deployment
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value]
}
