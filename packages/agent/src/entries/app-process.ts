import { mkdtemp, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import type { FromApp, Introduction, RunAction } from '../apps/app-messages.ts'
import { type RegisteredApp, registeredApps } from '../apps/app-registry.ts'
import { markRequests } from '../apps/mark-requests.ts'
import { isTypeScript, loadTypeScript, prepareTypeScript } from '../apps/typescript-loader.ts'

/*
 * Runs the actions of an app, one at a time. Whatever the app does to this process, the server notices its end. The
 * app's files may be written after the start: the first line of input says that they exist.
 */

const [, , entrypoint = '', berthUrl = ''] = process.argv
// Kept, because the app may replace it.
const write = process.stdout.write.bind(process.stdout)
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const introduction = lines.next()
if (isTypeScript(entrypoint)) await prepareTypeScript()
const { secret } = JSON.parse((await introduction).value ?? '{}') as Introduction
const logError = process.stderr.write.bind(process.stderr)
/**
 * Starts on a line of its own, whatever the app has begun. Resolves when the message is written: the app may have
 * filled the pipe.
 */
const tell = (message: FromApp) =>
  new Promise<void>((resolve) => write(`\n${secret} ${JSON.stringify(message)}\n`, () => resolve()))

let invocation: string | undefined
markRequests(berthUrl, () => invocation)
// A rejection that the app has not handled is logged and does not end the process.
process.on('unhandledRejection', (reason) => logError(`Unhandled rejection: ${inspect(reason)}\n`))

const apps = await load().catch(async (error: unknown) => {
  await tell({ type: 'load-failed', reason: reasonOf(error) })
  return []
})
if (apps.length > 0) {
  const folder = await mkdtemp(join(tmpdir(), 'results-'))
  await tell({
    type: 'loaded',
    apps: apps.map((app) => ({ name: app.name, actions: app.getActions().map(({ name }) => name) })),
  })
  for (let count = 0; ; count += 1) {
    const { value, done } = await lines.next()
    if (done) break
    await tell(await run(JSON.parse(value) as RunAction, join(folder, `${count}.json`)))
  }
}
process.exit(0)

async function load(): Promise<readonly RegisteredApp[]> {
  if (isTypeScript(entrypoint)) await loadTypeScript()
  // Node.js detects modules and scripts itself; the TypeScript loader handles imports and requires.
  if (/\.c[jt]s$/.test(entrypoint)) createRequire(import.meta.url)(entrypoint)
  else await import(pathToFileURL(entrypoint).href)
  const found = await registeredApps(entrypoint)
  if (found.length > 0) return found
  throw new Error('The entrypoint registers no app. Call app() of the client of @onkernel/sdk at its top level.')
}

async function run({ invocation_id, app, action, payload }: RunAction, path: string): Promise<FromApp> {
  invocation = invocation_id
  try {
    const found = apps.find(({ name }) => name === app)?.getAction(action)
    if (!found) throw new Error(`The app ${app} registers no action ${action}.`)
    const result = await found.handler({ invocation_id }, payload === undefined ? undefined : JSON.parse(payload))
    const text = result === undefined ? 'null' : JSON.stringify(result)
    if (text === undefined) throw new Error(`The result cannot be written as JSON: it is a ${typeof result}.`)
    await writeFile(path, text)
    return { type: 'done', path }
  } catch (error) {
    logError(`${inspect(error)}\n`)
    return { type: 'failed', reason: reasonOf(error) }
  } finally {
    invocation = undefined
  }
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : inspect(error)
  return text.slice(0, 2_000)
}
