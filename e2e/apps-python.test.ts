import assert from 'node:assert/strict'
import { after, before, type TestOptions, test } from 'node:test'
import { toFile } from '@onkernel/sdk'
import { deepOnly, isDeep } from './fault/testing/deep.ts'
import { Berth } from './testing/berth.ts'
import { zipOf } from './testing/browsers/extension-files.ts'
import { PythonIndex } from './testing/servers/python-index.ts'

/* An app in Python with the unmodified official framework. */

// Playwright takes 50 MB and is used by one test.
const requirements = ['kernel==0.131.0', ...(isDeep ? ['playwright==1.65.2'] : [])]
const index = await PythonIndex.open(requirements)
const berth = await Berth.start({ environment: index.environment })
const client = await berth.client()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await index[Symbol.asyncDispose]()
})

const python = `
import os
import sys
from dataclasses import dataclass

from kernel import App, AsyncKernel, Kernel, KernelContext

from words import greeting

app = App("snake")
kernel = AsyncKernel()


@dataclass
class Answer:
    payload: object
    secret: str


@app.action("echo")
def echo(ctx: KernelContext, payload):
    print(greeting, ctx.invocation_id)
    return Answer(payload, os.environ["SECRET"])


@app.action("browse")
async def browse(ctx: KernelContext, payload: dict):
    from playwright.async_api import async_playwright

    session = await kernel.browsers.create(invocation_id=ctx.invocation_id, headless=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(session.cdp_ws_url)
        page = browser.contexts[0].pages[0]
        await page.set_content("<title>from Python</title>")
        return {"title": await page.title(), "session": session.session_id}


@app.action("open")
async def open_session(ctx: KernelContext):
    session = await kernel.browsers.create(invocation_id=ctx.invocation_id, headless=True)
    return {"session": session.session_id}


@app.action("unmarked")
def unmarked(ctx: KernelContext):
    with Kernel() as client:
        session = client.browsers.create(headless=True)
    return session.session_id


@app.action("follow")
def follow(ctx: KernelContext, payload: dict):
    with Kernel() as client:
        invocation = [event.event for event in client.invocations.follow(payload["invocation"])]
        deployment = []
        for event in client.deployments.follow(payload["deployment"]):
            deployment.append(event.event)
            if event.event == "deployment_state":
                break
    return {"invocation": invocation, "deployment": sorted(set(deployment))}


@app.action("raise")
async def fail(ctx: KernelContext):
    raise ValueError("not today")


@app.action("nan")
def nan(ctx: KernelContext):
    return float("nan")


@app.action("set")
def some_set(ctx: KernelContext):
    return {"a"}


@app.action("exit")
def leave(ctx: KernelContext):
    sys.exit(3)


@app.action("hang")
def hang(ctx: KernelContext):
    print("hanging")
    while True:
        pass


@app.action("flood")
def flood(ctx: KernelContext):
    while True:
        print("x" * 65536)


@app.action("greedy")
def greedy(ctx: KernelContext):
    everything = []
    while True:
        everything.append(bytearray(b"x") * (64 * 1024**2))
`
const source = {
  'src/main.py': python,
  'src/words.py': 'greeting = "hello from"\n',
  'requirements.txt': requirements.join('\n'),
}

async function deploy(files: Readonly<Record<string, string>>) {
  const file = await toFile(await zipOf(files), 'source.zip')
  const { id } = await client.deployments.create({
    file,
    entrypoint_rel_path: 'src/main.py',
    env_vars: { SECRET: 'sealed' },
  })
  const log: string[] = []
  for await (const event of await client.deployments.follow(id)) {
    if (event.event === 'log') log.push(event.message)
    if (event.event === 'deployment_state' && ['running', 'failed'].includes(event.deployment.status)) break
  }
  return { log, ...(await client.deployments.retrieve(id)) }
}

const invoke = (action_name: string, payload?: unknown) =>
  client.invocations.create({
    app_name: 'snake',
    version: 'latest',
    action_name,
    ...(payload !== undefined && { payload: JSON.stringify(payload) }),
  })

before(async () => {
  const { status, status_reason, log } = await deploy(source)
  assert.equal(status, 'running', JSON.stringify([status_reason, log]))
})

test('an action in Python gets its payload and environment, and its result and log are reported', async () => {
  const { id, output, status_reason } = await invoke('echo', { of: ['many', 1, null] })

  assert.deepEqual(
    output && JSON.parse(output),
    { payload: { of: ['many', 1, null] }, secret: 'sealed' },
    status_reason ?? '',
  )
  const lines: string[] = []
  for await (const event of await client.invocations.follow(id)) if (event.event === 'log') lines.push(event.message)
  assert.deepEqual(lines, [`hello from ${id}`])
  assert.deepEqual(JSON.parse((await invoke('echo')).output ?? ''), { payload: null, secret: 'sealed' })
})

const failures: readonly (readonly [what: string, action: string, reason: RegExp, when?: TestOptions])[] = [
  ['raises', 'raise', /^not today$/],
  ['returns what is no JSON', 'nan', /JSON/],
  ['returns a set', 'set', /cannot be written as JSON: it has a set/],
  ['ends its process', 'exit', /exit code 3/],
  ['floods its output', 'flood', /more than 4 MiB of output/, deepOnly],
  ['takes all memory', 'greedy', /memory|was killed/i, deepOnly],
]
for (const [what, action, reason, when = {}] of failures) {
  test(`an action in Python that ${what} fails with the reason, and the next one runs`, when, async () => {
    const failed = await invoke(action)

    assert.equal(failed.status, 'failed')
    assert.match(failed.status_reason ?? '', reason)
    assert.equal((await invoke('echo')).status, 'succeeded')
  })
}

test('an action in Python that never yields ends when it is cancelled', async () => {
  const { id } = await client.invocations.create({
    app_name: 'snake',
    version: 'latest',
    action_name: 'hang',
    async: true,
  })
  for await (const event of await client.invocations.follow(id)) {
    if (event.event === 'log' && event.message === 'hanging') break
  }

  assert.equal((await client.invocations.update(id, { status: 'failed' })).status, 'failed')
  assert.equal((await invoke('echo')).status, 'succeeded')
})

test('an app in Python opens a session and returns it', async () => {
  const { output, status_reason } = await invoke('open')

  assert.ok(output, status_reason ?? '')
  await client.browsers.deleteByID(JSON.parse(output).session)
})

test('an app in Python drives a session with Playwright', deepOnly, async () => {
  const { output, status_reason } = await invoke('browse', {})

  assert.ok(output, status_reason ?? '')
  const { title, session } = JSON.parse(output)
  assert.equal(title, 'from Python')
  await client.browsers.deleteByID(session)
})

test('a session that the client in Python creates belongs to the invocation', async () => {
  const { id, output, status_reason } = await invoke('unmarked')

  assert.ok(output, status_reason ?? '')
  const headers = { authorization: `Bearer ${berth.apiKey}` }
  const response = await fetch(`${berth.url}/invocations/${id}/browsers`, { headers })
  const { browsers } = (await response.json()) as { browsers: readonly { session_id: string }[] }
  assert.deepEqual(
    browsers.map(({ session_id }) => session_id),
    [JSON.parse(output)],
  )
  await client.invocations.deleteBrowsers(id)
})

test('the client in Python reads the streams', async () => {
  const { id } = await invoke('echo', {})
  const { items } = await client.apps.list({ app_name: 'snake' })

  const { output, status_reason } = await invoke('follow', { invocation: id, deployment: items[0]?.deployment })

  assert.ok(output, status_reason ?? '')
  const { invocation, deployment } = JSON.parse(output)
  assert.deepEqual(invocation, ['log', 'invocation_state'])
  assert.ok(deployment.includes('deployment_state'), deployment.join())
})

test('a project with a lock file is installed once, with the locked versions', async () => {
  const project = `[project]
name = "locked"
version = "1.0.0"
requires-python = ">=3.11"
dependencies = ["kernel"]
`
  const code = `
from kernel import App

app = App("locked")


@app.action("act")
async def act(ctx):
    return "ran"
`
  const files = { 'src/main.py': code, 'pyproject.toml': project, 'uv.lock': await index.lock(project) }

  const first = await deploy(files)
  const fetched = index.fetched
  const second = await deploy(files)

  assert.equal(first.status, 'running', JSON.stringify([first.status_reason, first.log]))
  assert.equal(second.status, 'running', second.status_reason ?? '')
  assert.deepEqual(second.log, ['The dependencies are those of an earlier deployment.'])
  assert.equal(index.fetched, fetched)
  const { output } = await client.invocations.create({ app_name: 'locked', version: 'latest', action_name: 'act' })
  assert.equal(output, '"ran"')
})

test("a failed install fails the deployment, with the installer's output in its log", async () => {
  const { status, status_reason, log } = await deploy({ ...source, 'requirements.txt': 'no-such-package==1\n' })

  assert.deepEqual(
    [status, status_reason],
    ['failed', 'The dependencies could not be installed: uv pip install failed with exit code 1.'],
  )
  assert.match(log.join('\n'), /no-such-package/)
})
