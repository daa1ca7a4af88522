import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { toFile } from '@onkernel/sdk'
import { type Browser, chromium, type Page } from 'playwright-core'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { hostMachinesOnly } from './testing/cluster-environment.ts'
import { startPages } from './testing/pages.ts'
import { agentProcess, memoryMiB } from './testing/processes.ts'

const mebibyte = 1024 * 1024
const pages = await startPages()
const berth = await Berth.borrow()
const client = await berth.client()
const { fs } = client.browsers
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

const files = new Map([1, 2].map((number) => [`/file-${number}`, randomBytes(8 * mebibyte)]))
for (const [path, content] of files) {
  pages.serve(path, (_request, response) => {
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment; filename="file.bin"',
      'content-length': content.length,
    })
    response.end(content)
  })
}
pages.serve('/downloads', '<a id=a href=/file-1 download>one</a><a id=b href=/file-2 download>two</a>')

const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')

async function readHash(id: string, path: string): Promise<string> {
  return sha256(new Uint8Array(await (await fs.readFile(id, { path })).arrayBuffer()))
}

interface Use {
  readonly id: string
  readonly browser: Browser
  readonly page: Page
}

async function withSession(headless: boolean, use: (session: Use) => Promise<void>): Promise<void> {
  const { session_id: id, cdp_ws_url } = await client.browsers.create({
    headless,
    timeout_seconds: 300,
    chrome_policy: pages.trusted,
  })
  try {
    const browser = await chromium.connectOverCDP(cdp_ws_url)
    const page = browser.contexts()[0]?.pages()[0]
    assert.ok(page)
    await use({ id, browser, page })
    await browser.close()
  } finally {
    await client.browsers.deleteByID(id)
  }
}

/** Clicks and waits until the browser reports a complete download. Returns the reported path. */
async function download({ browser, page }: Use, link: string, behavior: object): Promise<string | undefined> {
  await page.goto(`${pages.url}/downloads`)
  const cdp = await browser.newBrowserCDPSession()
  await cdp.send('Browser.setDownloadBehavior', { ...behavior, eventsEnabled: true } as never)
  const completed = new Promise<string | undefined>((resolve) => {
    cdp.on('Browser.downloadProgress', (progress) => {
      if (progress.state === 'completed') resolve((progress as { filePath?: string }).filePath)
    })
  })
  await page.click(link)
  return completed
}

for (const headless of [true, false]) {
  const kind = headless ? 'headless' : 'headful'

  test(`a download in a ${kind} session is saved where the client wants it, and in Downloads by default (case 13)`, () =>
    withSession(headless, async (session) => {
      await download(session, '#a', { behavior: 'allow', downloadPath: '/tmp/downloads' })
      assert.equal(await readHash(session.id, '/tmp/downloads/file.bin'), sha256(files.get('/file-1') as Buffer))
      assert.equal((await fs.fileInfo(session.id, { path: '/tmp/downloads/file.bin' })).size_bytes, 8 * mebibyte)

      await withSession(headless, async (fresh) => {
        const path = await download(fresh, '#b', { behavior: 'default' })
        assert.equal(path, '/home/kernel/Downloads/file.bin')
        assert.equal(await readHash(fresh.id, path as string), sha256(files.get('/file-2') as Buffer))

        await download(fresh, '#b', { behavior: 'allow', downloadPath: '/tmp/downloads' })
        assert.equal(await readHash(fresh.id, '/tmp/downloads/file.bin'), sha256(files.get('/file-2') as Buffer))
        assert.equal(await readHash(session.id, '/tmp/downloads/file.bin'), sha256(files.get('/file-1') as Buffer))
      })
    }))
}

test('a file of 60 MiB is uploaded to a session, and a page uploads it from there (case 14)', hostMachinesOnly, () =>
  withSession(true, async ({ id, page }) => {
    const hashes: string[] = []
    pages.serve('/form', '<input type=file id=a><input type=file id=b>')
    pages.serve('/take', async (request, response) => {
      const hash = createHash('sha256')
      for await (const chunk of request) hash.update(chunk)
      hashes.push(hash.digest('hex'))
      response.end()
    })
    await page.goto(`${pages.url}/form`)
    const send = (input: string) =>
      page.evaluate(
        `fetch('/take', { method: 'POST', body: document.querySelector('${input}').files[0] }).then((answer) => answer.text())`,
      )
    const large = randomBytes(60 * mebibyte)
    const processes = [berth.pid, await agentProcess(id)]
    const before = await memoryMiB(processes)
    let most = before
    const watching = setInterval(async () => {
      most = Math.max(most, await memoryMiB(processes))
    }, 150)

    await fs.upload(id, { files: [{ file: await toFile(large, 'up.bin'), dest_path: '/tmp/up.bin' }] })
    clearInterval(watching)
    assert.ok(most - before < 150, `grew by ${Math.round(most - before)} MiB`)

    const cdp = await page.context().newCDPSession(page)
    const { root } = await cdp.send('DOM.getDocument')
    const { nodeId } = await cdp.send('DOM.querySelector', { nodeId: root.nodeId, selector: '#a' })
    await cdp.send('DOM.setFileInputFiles', { nodeId, files: ['/tmp/up.bin'] })
    await send('#a')
    const small = randomBytes(10 * mebibyte)
    await page.setInputFiles('#b', { name: 'x.bin', mimeType: 'application/octet-stream', buffer: small })
    await send('#b')
    assert.deepEqual(hashes, [sha256(large), sha256(small)])

    const absent = cdp.send('DOM.setFileInputFiles', { nodeId, files: ['/tmp/none.bin'] }).then(() => send('#a'))
    await assert.rejects(absent)
    assert.equal(await page.evaluate('1 + 1'), 2)
    await cdp.detach()
  }),
)

test('downloads of pages are listed, and kept after the session if requested', async () => {
  const { session_id: id } = await client.browsers.create({
    headless: true,
    chrome_policy: pages.trusted,
    keep_downloads: true,
  } as never)
  const path = `/browsers/${id}/downloads`
  const list = async () => (await (await berth.request(path)).json()) as { name: string; size_bytes: number }[]
  const hash = async (name: string) =>
    sha256(new Uint8Array(await (await berth.request(`${path}/${name}`)).arrayBuffer()))
  const expected = sha256(files.get('/file-1') as Buffer)
  // Without a client, because some (such as Playwright) set a folder of their own.
  await client.browsers.update(id, { start_url: `${pages.url}/file-1` } as never)
  const isListed = async () => ((await list()).length > 0 ? list() : undefined)
  const names = await until('the download', isListed, { limitSeconds: 60 })
  assert.deepEqual(
    names.map(({ name, size_bytes }) => [name, size_bytes]),
    [['file.bin', 8 * mebibyte]],
  )
  assert.equal(await hash('file.bin'), expected)

  await client.browsers.deleteByID(id)

  assert.deepEqual(
    (await list()).map(({ name }) => name),
    ['file.bin'],
  )
  assert.equal(await hash('file.bin'), expected)
})
