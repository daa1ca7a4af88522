import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startFakeEgress } from '../testing/fake-egress.ts'
import { type StartedAgent, startAgent } from '../testing/start-agent.ts'

test('a headful window fills the display, and the page has the focus', async () => {
  await using agent = await startAgent({ headless: false })
  await agent.becomesReady()
  const client = await agent.connect()
  const page = await client.attach()

  const [left, top, width, height] = await client.evaluate('[screenX, screenY, outerWidth, outerHeight]', page)

  assert.deepEqual([left, top, width, height], [0, 0, 1280, 800])
  assert.equal(await client.evaluate('document.hasFocus()', page), true)
  assert.ok(existsSync(join(agent.config.run_folder, 'vnc.sock')))
})

test('in kiosk mode the page fills the display', async () => {
  await using agent = await startAgent({
    headless: false,
    kiosk_mode: true,
    viewport: { width: 641, height: 481, refresh_rate: 30 },
  })
  await agent.becomesReady()
  const client = await agent.connect()
  const page = await client.attach()

  assert.deepEqual(await client.evaluate('[screenX, screenY, innerWidth, innerHeight]', page), [0, 0, 641, 481])
})

test('a killed display is reported, and replaced together with its browser', async () => {
  await using agent = await startAgent({ headless: false })
  await agent.becomesReady()
  const crashed = agent.eventsUntil((told) => told.event === 'service_crashed' && told.service === 'display')
  const [display] = agent.children('Xtigervnc')
  assert.ok(display)
  const client = await agent.connect()

  process.kill(display, 'SIGKILL')

  await crashed
  await client.closed
  const again = await agent.connect()
  assert.equal(await again.evaluate('1 + 1', await again.newPage()), 2)
  assert.notEqual(agent.children('Xtigervnc')[0], display)
})

test('a stealth headless browser looks like a headful one', async () => {
  await using agent = await startAgent({ stealth: true })
  await agent.becomesReady()
  const client = await agent.connect()
  const { userAgent } = await client.send('Browser.getVersion')
  const page = await client.attach()

  const inPage = await client.evaluate(
    '[navigator.webdriver, navigator.userAgent, innerWidth, innerHeight, screen.width]',
    page,
  )

  assert.deepEqual(inPage, [false, userAgent, 1280, 800, 1280])
  assert.doesNotMatch(userAgent, /Headless/)
})

test('stops on request, and leaves no process', async () => {
  await using agent = await startAgent()
  await agent.becomesReady()

  const { status } = await agent.call('POST', '/stop')

  assert.equal(status, 204)
  assert.equal(await agent.exited, 0)
  await leavesNoProcess(agent)
})

test('stops on SIGTERM in the same way', async () => {
  await using agent = await startAgent({ headless: false })
  await agent.becomesReady()

  agent.process.kill('SIGTERM')

  assert.equal(await agent.exited, 0)
  await leavesNoProcess(agent)
})

test('a browser that cannot be started is reported with the reason, and ends the agent', async () => {
  await using agent = await startAgent({ chromium_path: '/usr/lib/chromium/nothing' })

  const exitCode = await agent.exited

  assert.equal(exitCode, 1)
  assert.match(agent.log, /nothing/)
})

test('a browser that crashes repeatedly is not started again', async () => {
  await using agent = await startAgent()
  await agent.becomesReady()
  const failure = agent.statesUntil(({ state }) => state === 'failed')
  let count = 0
  const crashes = agent.eventsUntil(() => ++count === 5)

  for (let crash = 1; crash <= 5; crash++) {
    // Connecting succeeds only with the Chromium that runs.
    const client = await agent.connect()
    for (const pid of agent.children('chromium')) process.kill(pid, 'SIGKILL')
    await client.closed
  }

  await failure
  assert.equal((await crashes).length, 5)
  assert.equal(await agent.exited, 1)
})

test('the browser opens no connections except those of pages', async () => {
  const asked: string[] = []
  await using agent = await startAgent()
  await using _egress = await startFakeEgress(
    agent,
    (request, response) => {
      asked.push(`${request.method} ${request.url}`)
      response.setHeader('content-type', 'text/html').end('<title>through egress</title>')
    },
    {
      lookup: ({ name }) => {
        asked.push(name)
        return { by_name: true }
      },
    },
  )
  await agent.becomesReady()
  const client = await agent.connect()
  const page = await client.attach()
  await client.send('Page.enable', {}, page)

  const loaded = client.nextEvent('Page.loadEventFired')
  await client.send('Page.navigate', { url: 'http://page.test/' }, page)
  await loaded

  assert.equal(await client.evaluate('document.title', page), 'through egress')
  const pages = asked.filter((line) => !line.endsWith('/favicon.ico'))
  assert.deepEqual([...new Set(pages)].sort(), ['GET http://page.test/', 'page.test'])
})

test('opens the start page without waiting for it', async () => {
  await using agent = await startAgent()
  await agent.configure({ start_url: 'http://start.test/' })
  const asked = Promise.withResolvers<string>()
  await using _egress = await startFakeEgress(agent, (request, response) => {
    asked.resolve(String(request.url))
    response.end()
  })

  assert.equal(await asked.promise, 'http://start.test/')
})

test('downloads are saved in the home folder', async () => {
  await using agent = await startAgent()
  await using _egress = await startFakeEgress(agent, (_request, response) => {
    response.setHeader('content-disposition', 'attachment; filename=file.bin').end('the content')
  })
  await agent.becomesReady()
  const client = await agent.connect()
  await client.send('Browser.setDownloadBehavior', { behavior: 'default', eventsEnabled: true })
  const completed = client.nextEvent('Browser.downloadProgress', ({ state }) => state === 'completed')

  void client.ask('Page.navigate', { url: 'http://file.test/' }, await client.attach())

  const { filePath } = await completed
  assert.equal(filePath, join(agent.config.home_folder, 'Downloads', 'file.bin'))
  assert.equal(readFileSync(filePath, 'utf8'), 'the content')
})

/** A killed process is there until it gets the processor. */
async function leavesNoProcess(agent: StartedAgent): Promise<void> {
  const deadline = performance.now() + 30_000
  while (processesOf(agent) !== '') {
    assert.ok(performance.now() < deadline, processesOf(agent))
    await delay(20)
  }
}

/** The processes whose arguments name the agent's folder. */
function processesOf({ folder }: StartedAgent): string {
  const listing = execFileSync('ps', ['-eo', 'pid,stat,args'], { encoding: 'utf8' })
  return listing
    .split('\n')
    .filter((line) => line.includes(folder))
    .join('\n')
}
