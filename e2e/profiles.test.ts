import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { chromium, type Page } from 'playwright-core'
import { Berth } from './testing/berth.ts'
import { startPages } from './testing/pages.ts'

const pages = await startPages()
const berth = await Berth.start({ environment: { BERTH_EGRESS_ALLOW: `127.0.0.1:${pages.port}` } })
const client = await berth.client()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
  if (process.env.SHOWLOG) console.log(berth.log)
})
for (const name of ['one', 'two', 'three']) pages.serve(`/${name}`, `<title>${name}</title>`)
pages.serve('/login', (_q, r) => {
  r.writeHead(200, { 'content-type': 'text/html', 'set-cookie': ['kept=1; Max-Age=86400', 'session=2'] })
  r.end('<title>in</title>')
})


test('smoke', async () => {
  for (const headless of [true, false]) {
  const p = await client.profiles.create({ name: `smoke-${headless}` })
  let t = performance.now()
  const s = await client.browsers.create({ headless, profile: { name: `smoke-${headless}`, save_changes: true } })
  console.log('create', performance.now() - t)
  let b = await chromium.connectOverCDP(s.cdp_ws_url)
  let page = b.contexts()[0]!.pages()[0]!
  await page.goto(`${pages.url}/login`)
  for (let i = 0; i < 2; i++) {
  const q = await b.contexts()[0]!.newPage()
  await q.goto(`${pages.url}/two?${i}`)
  }
  await b.close()
  t = performance.now()
  await client.browsers.deleteByID(s.session_id)
  console.log('delete', performance.now() - t)
  for (let k = 0; k < 0; k++) {
  t = performance.now()
  const s2 = await client.browsers.create({ headless, profile: { id: p.id } })
  console.log('create', performance.now() - t)
  t = performance.now()
  b = await chromium.connectOverCDP(s2.cdp_ws_url)
  console.log('connect', performance.now() - t)
  console.log(b.contexts()[0]!.pages().length, (await b.contexts()[0]!.cookies()).map((c) => c.name))
  for (const q of b.contexts()[0]!.pages()) await q.title()
  console.log('titles', performance.now() - t)
  const z = await b.contexts()[0]!.newPage()
  console.log('new page', performance.now() - t)
  for (const q of b.contexts()[0]!.pages()) await q.close()
  console.log('closed', performance.now() - t)
  await b.close()
  await client.browsers.deleteByID(s2.session_id)
  }
  // zero tabs
  const s3 = await client.browsers.create({ headless, profile: { id: p.id, save_changes: true } })
  b = await chromium.connectOverCDP(s3.cdp_ws_url)
  for (const q of b.contexts()[0]!.pages()) await q.close()
  await b.close()
  await client.browsers.deleteByID(s3.session_id)
  const s4 = await client.browsers.create({ headless, profile: { id: p.id, save_changes: true } })
  b = await chromium.connectOverCDP(s4.cdp_ws_url)
  console.log(b.contexts()[0]!.pages().map(p=>p.url())); await new Promise(r=>setTimeout(r,700)); console.log(b.contexts()[0]!.pages().map(p=>p.url()))
  await b.close()
  await client.browsers.deleteByID(s4.session_id)
  }
})
