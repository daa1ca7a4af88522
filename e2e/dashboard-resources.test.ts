import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { startFauxqs } from 'fauxqs'
import type { Page, Request } from 'playwright-core'
import { deepOnly } from './fault/testing/deep.ts'
import { Berth } from './testing/berth.ts'
import { messagingExtension, packCrx, zipOf } from './testing/browsers/extension-files.ts'
import { DashboardUser, isAccessible, openPage } from './testing/dashboard.ts'

/** Replaces the store, with the same extension for every request, and receives the events of webhooks. */
const { crx } = packCrx(await zipOf(messagingExtension('from the store', 1)))
const outside = createServer((request, response) => {
  if (request.url === '/webhook') response.writeHead(request.method === 'POST' ? 204 : 405)
  response.end(request.url === '/webhook' ? undefined : crx)
}).listen(0, '127.0.0.1')
await once(outside, 'listening')
const outsideHost = `127.0.0.1:${(outside.address() as AddressInfo).port}`
const bucket = 'kept-logs'
const s3 = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false })
s3.createBucket(bucket)
const berth = await Berth.start({
  environment: {
    BERTH_CHROME_STORE_URL: `http://${outsideHost}/crx`,
    BERTH_EGRESS_ALLOW: outsideHost,
    BERTH_AUDIT_EXPORT_BUCKETS: bucket,
    BERTH_AUDIT_EXPORT_ENDPOINT: `http://127.0.0.1:${s3.port}`,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
  },
})
const user = await DashboardUser.start(berth)
after(async () => {
  await user.browser.close()
  await berth[Symbol.asyncDispose]()
  await s3.stop()
  outside.close()
})

test('the pages of resources list, create, edit and delete', async () => {
  const page = await user.signedIn()
  await openPage(page, 'Proxies')
  await page.getByText('No proxy.').waitFor()
  await page.getByRole('button', { name: 'New proxy' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Type').selectOption('custom')
  await form.getByLabel('Name').first().fill('office')
  await form.locator('summary', { hasText: 'Config' }).click()
  await form.getByLabel('Host', { exact: true }).fill('http://not-a-host')
  await form.getByLabel('Port').fill('x')
  await form.getByRole('button', { name: 'Create' }).click()
  await form.getByText('must be a host name or an address').waitFor()
  await form.getByLabel('Host', { exact: true }).fill('proxy.test')
  await form.getByLabel('Port').fill('3128')
  await form.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('cell', { name: 'proxy.test:3128' }).waitFor()
  await isAccessible(page, 'proxies')
  await page.getByRole('button', { name: 'Edit' }).click()
  await form.getByLabel('Name').fill('office-2')
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByText('office-2', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  await form.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No proxy.').waitFor()

  await openPage(page, 'API keys')
  await page.getByRole('button', { name: 'New API key' }).click()
  await form.getByLabel('Name').fill('made here')
  await form.getByRole('button', { name: 'Create' }).click()
  const told = await form.getByText(/^sk_\w+/).textContent()
  const [key = ''] = (told ?? '').split('\n')
  assert.equal((await fetch(`${berth.url}/browsers`, { headers: { authorization: `Bearer ${key}` } })).status, 200)
  await page.keyboard.press('Escape')
  await openPage(page, 'Audit log')
  await page.getByRole('cell', { name: 'POST /proxies' }).first().waitFor()
  await isAccessible(page, 'audit')
  await openPage(page, 'Profiles')
  await page.getByText('No profile.').waitFor()
  const headers = { authorization: `Bearer ${berth.apiKey}`, 'content-type': 'application/json' }
  const made = { method: 'POST', headers, body: JSON.stringify({ name: 'made-elsewhere' }) }
  assert.equal((await fetch(`${berth.url}/profiles`, made)).status, 201)
  await page.getByRole('cell', { name: 'made-elsewhere' }).first().waitFor()
  await followsOnlyWhileItIsSeen(page)

  const another = { method: 'POST', headers, body: JSON.stringify({ name: 'another-project' }) }
  assert.equal((await fetch(`${berth.url}/org/projects`, another)).status, 201)
  const projects = page.getByRole('combobox', { name: 'Project' })
  await projects.locator('option', { hasText: 'another-project' }).waitFor({ state: 'attached' })
  await projects.selectOption('another-project')
  await page.getByText('No profile.').waitFor()
  await projects.selectOption('Default project')
  await page.getByRole('cell', { name: 'made-elsewhere' }).first().waitFor()
  await page.context().close()
})

test('an extension comes from the store, a project gets limits, and a vault shows no value', async () => {
  const page = await user.signedIn()
  const form = page.getByRole('dialog')
  await openPage(page, 'Extensions')
  await page.getByRole('button', { name: 'Add from the store' }).click()
  await form.getByLabel('URL').fill('https://elsewhere.test/')
  await form.getByRole('button', { name: 'Create' }).click()
  await form.locator('[aria-invalid=true], [role=alert]').first().waitFor()
  await form.getByLabel('URL').fill(`https://chromewebstore.google.com/detail/any/${'a'.repeat(32)}`)
  await form.getByLabel('Name').fill('from-the-store')
  await form.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('cell', { name: 'from-the-store' }).first().waitFor()
  await isAccessible(page, 'extensions')

  await openPage(page, 'Projects')
  await page.getByRole('button', { name: 'Limits' }).first().click()
  await form.getByLabel('Max concurrent sessions').fill('7')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Limits' }).first().click()
  assert.equal(await form.getByLabel('Max concurrent sessions').inputValue(), '7')
  await isAccessible(page, 'limits')
  await form.getByLabel('Max concurrent sessions').fill('0')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })

  const headers = { authorization: `Bearer ${berth.apiKey}`, 'content-type': 'application/json' }
  await fetch(`${berth.url}/vaults`, { method: 'POST', headers, body: JSON.stringify({ name: 'shop' }) })
  const field = { name: 'pin', type: 'password', value: 'not-to-be-shown' }
  const made = await fetch(`${berth.url}/vaults/shop/items/known`, {
    method: 'PUT',
    headers,
    body: JSON.stringify({ type: 'credential', spec: { provider: 'kernel', fields: [field] } }),
  })
  assert.equal(made.status, 200)
  await openPage(page, 'Vaults')
  await page.getByRole('link', { name: 'Items' }).click()
  await page.getByText('pin ✓').waitFor()
  await page.getByRole('button', { name: 'New item' }).click()
  await form.getByLabel('Key').fill('asked-for')
  await form.getByLabel('Fields', { exact: false }).first().fill('user\npassword')
  await form.getByRole('button', { name: 'Create' }).click()
  await page.getByText('password: none').waitFor()
  await page.getByRole('link', { name: 'Enter values' }).waitFor()
  assert.doesNotMatch(await page.content(), /not-to-be-shown/)
  await isAccessible(page, 'vault')
  await page.context().close()
})

test('deliveries of a webhook are shown and sent again', async () => {
  const page = await user.signedIn()
  const form = page.getByRole('dialog')
  await openPage(page, 'Webhooks')
  await page.getByRole('button', { name: 'New webhook' }).click()
  await form.getByLabel('URL').fill(`http://${outsideHost}/webhook`)
  await form.getByRole('button', { name: 'Create' }).click()
  await form.getByText(/^whsec_/).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'Deliveries' }).click()
  await page.getByText('No delivery yet.').waitFor()
  await page.getByRole('link', { name: 'All webhooks' }).click()
  await page.getByRole('button', { name: 'Send a test' }).click()
  await form.getByText('A test event has been sent.').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'Deliveries' }).click()
  const row = page.getByRole('row').filter({ hasText: 'webhook.test' })
  // The list shows new deliveries.
  const succeeded = row.filter({ hasText: /succeeded204 in \d+ ms/ })
  await succeeded.waitFor()
  await row.getByRole('button', { name: 'Send again' }).click()
  await page.getByText('sent again').waitFor()
  await succeeded.nth(1).waitFor()
  await row.last().getByRole('button', { name: 'Details' }).click()
  await form.getByText(/204 in \d+ ms/).waitFor()
  await form.getByText('"type": "webhook.test"').waitFor()
  await isAccessible(page, 'delivery')
  await page.keyboard.press('Escape')
  await isAccessible(page, 'deliveries')
  await page.getByRole('combobox', { name: 'Status' }).selectOption('failed')
  await page.getByText('No delivery matches.').waitFor()
  assert.match(page.url(), /status=failed/)
  await page.context().close()
})

test('the audit log is exported, and payment providers are kept', async () => {
  const page = await user.signedIn()
  const form = page.getByRole('dialog')
  await openPage(page, 'Audit exports')
  await page.getByRole('button', { name: 'New export destination' }).click()
  await form.getByLabel('Type').selectOption('s3')
  await form.getByLabel('Format').selectOption('jsonl.gz')
  await form.getByLabel('Region').fill('us-east-1')
  await form.getByLabel('Bucket').fill('somebody-elses')
  await form.getByLabel('Role ARN').fill('arn:aws:iam::1:role/berth')
  await form.getByRole('button', { name: 'Create' }).click()
  await form.getByText('does not permit exports to this bucket').waitFor()
  await form.getByLabel('Bucket').fill(bucket)
  await form.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('cell', { name: `s3://${bucket}/`, exact: true }).waitFor()
  await page.getByRole('button', { name: 'Test' }).click()
  await form.getByText('It works.').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Edit' }).click()
  await form.getByLabel('Prefix').fill('berth')
  await form.getByLabel('Status').selectOption('active')
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('cell', { name: 'active' }).waitFor()
  await page.getByRole('cell', { name: `s3://${bucket}/berth` }).waitFor()
  await isAccessible(page, 'audit-exports')
  await page.getByRole('button', { name: 'Delete' }).click()
  await form.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No destination.').waitFor()

  await openPage(page, 'Vault provider configs')
  await page.getByRole('button', { name: 'New Link config' }).click()
  await form.getByLabel('Name').fill('payments')
  await form.getByRole('button', { name: 'Create' }).click()
  await form.locator('.fault', { hasText: /./ }).first().waitFor()
  await form.getByLabel('Client ID').fill('client-1')
  await form.getByLabel('Client secret').fill('not-to-be-shown')
  await form.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('cell', { name: 'client-1' }).waitFor()
  assert.doesNotMatch(await page.content(), /not-to-be-shown/)
  await isAccessible(page, 'vault-providers')
  await page.getByRole('button', { name: 'Edit' }).click()
  await form.getByLabel('Name').fill('payments-2')
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('cell', { name: 'payments-2' }).first().waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  await form.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No config of a payment provider.').waitFor()
  await page.context().close()
})

test('every page of the menu is accessible, in both themes and on a phone, and leads to a guide', async () => {
  const headers = { authorization: `Bearer ${berth.apiKey}`, 'content-type': 'application/json' }
  const make = async (path: string, body: object) => {
    const { status } = await fetch(berth.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    assert.equal(status, 201, path)
  }
  await make('/credentials', { name: 'shop-login', domain: 'shop.test', values: { username: 'buyer' } })
  await make('/telemetry/destinations', { name: 'collector', endpoint: 'https://otlp.test' })
  const page = await user.signedIn()
  const guides = new Set<string>()
  for (const [title, name] of await pagesOf(page)) {
    await openPage(page, title)
    await page.locator('.empty, table, .facts, .rows').first().waitFor()
    assert.equal(await page.getByRole('alert').count(), 0, title)
    await isAccessible(page, `${name}-page`)
    for (const link of await page.locator('.empty a').all()) guides.add((await link.getAttribute('href')) ?? '')
  }
  assert.ok(guides.size > 0)
  for (const guide of guides) assert.equal((await fetch(berth.url + guide)).status, 200, guide)
  await page.context().close()
})

test('every form of the menu is accessible', deepOnly, async () => {
  const page = await user.signedIn()
  for (const [title, name] of await pagesOf(page)) {
    await openPage(page, title)
    await page.locator('.empty, table, .facts, .rows').first().waitFor()
    const buttons = page.locator('header.page button')
    for (let index = 0; index < (await buttons.count()); index++) {
      await buttons.nth(index).click()
      await page.getByRole('dialog').waitFor()
      await isAccessible(page, `${name}-form-${index}`)
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
  }
  await page.context().close()
})

/** A background page closes its connection, and reloads when it is visible again. */
async function followsOnlyWhileItIsSeen(page: Page): Promise<void> {
  const isStream = (request: Request) => request.url().endsWith('/dashboard/changes')
  const show = (state: string) =>
    page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))`)
  await Promise.all([page.waitForEvent('requestfailed', isStream), show('hidden')])
  await Promise.all([page.waitForRequest(isStream), page.waitForRequest(/api\/profiles/), show('visible')])
}

/** The pages of the menu: title, and name in the address. */
async function pagesOf(page: Page): Promise<readonly (readonly [title: string, name: string])[]> {
  const links = await page.getByRole('navigation').locator('a[href^="/dashboard/"]').all()
  return Promise.all(
    links.map(async (link) => {
      const path = (await link.getAttribute('href')) ?? ''
      return [(await link.textContent()) ?? '', path.slice(path.lastIndexOf('/') + 1)] as const
    }),
  )
}

test('a page whose code fails says so, and the others still work', async () => {
  const page = await user.signedIn()
  const list = '**/dashboard/api/proxies?*'
  await page.route(list, (route) => route.fulfill({ json: [null] }))
  await page.getByRole('navigation').getByRole('link', { name: 'Proxies' }).click()
  await page.getByRole('alert').getByText('This page is broken.').waitFor()
  await isAccessible(page, 'broken')
  await openPage(page, 'Profiles')
  await page.goBack()
  await page.unroute(list)
  await page.getByRole('button', { name: 'Reload' }).click()
  await page.getByText('No proxy.').waitFor()
  await page.context().close()
})

test('no page breaks its own policy', () => {
  assert.deepEqual(user.refusals, [])
})
