import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Page, Route } from 'playwright-core'
import { deepOnly, isDeep } from './fault/testing/deep.ts'
import { Berth } from './testing/berth.ts'
import { DashboardUser, isAccessible, openPage } from './testing/dashboard.ts'

const berth = await Berth.borrow()
const user = await DashboardUser.start(berth)
after(async () => {
  await user.browser.close()
  await berth[Symbol.asyncDispose]()
})

const refusal = { code: 'forbidden', message: 'The key may not read this.' }
const states: Readonly<Record<string, (route: Route) => unknown>> = {
  failed: (route) => route.fulfill({ status: 403, json: refusal }),
  loading: () => new Promise(() => {}),
}
/** Requests of the frame of all pages. */
const ofFrame = /\/dashboard\/(api\/auth\/context|api\/org\/projects|changes)/

/** A signed-in user whose requests end like this from now on. */
async function signedInWhere(answer: (route: Route) => unknown): Promise<Page> {
  const page = await user.signedIn()
  await page.route(/\/dashboard\/api\//, (route) =>
    ofFrame.test(route.request().url()) ? route.continue() : answer(route),
  )
  return page
}

/** Pages that differ in more than words; with --deep all of the menu. */
const titles: Readonly<Record<string, readonly string[]>> = { failed: ['Overview', 'Proxies'], loading: ['Proxies'] }

for (const [state, answer] of Object.entries(states)) {
  test(`a page whose data is ${state} says so, and is accessible`, async () => {
    const page = await signedInWhere(answer)
    const menu = page.getByRole('navigation').locator('a[href^="/dashboard/"]')
    // The frame has already read the projects.
    const all = (await menu.allTextContents()).filter((title) => title !== 'Projects')
    for (const title of isDeep ? all : (titles[state] ?? [])) {
      // The list of sessions is already loaded.
      if (title === 'Sessions') await page.goto(`${berth.url}/dashboard/sessions`)
      else await openPage(page, title)
      await page
        .getByRole(state === 'failed' ? 'alert' : 'status')
        .first()
        .waitFor()
      await isAccessible(page, `${state}-${title.toLowerCase().replaceAll(' ', '-')}`)
    }
    await page.context().close()
  })
}

test('an address that does not exist shows a page with a heading and a link back', async () => {
  const page = await user.signedIn()
  const others = [
    ['/vaults/none', 'Vault'],
    ['/webhooks/none', 'Deliveries'],
  ] as const
  for (const [path, heading] of [['/sessions/none', 'Session'] as const, ...(isDeep ? others : [])]) {
    await page.goto(`${berth.url}/dashboard${path}`)
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor()
    await page.getByRole('alert').first().waitFor()
    assert.equal(await page.title(), `${heading} · berth`)
    await isAccessible(page, `missing${path.replaceAll('/', '-')}`)
  }
  for (const path of ['/nothing', '/a/b/c']) {
    await page.goto(`${berth.url}/dashboard${path}`)
    await page.getByRole('heading', { name: 'Page not found.', level: 1 }).waitFor()
  }
  await isAccessible(page, 'missing')
  await page.getByRole('main').getByRole('link', { name: 'All sessions' }).click()
  await page.getByText('No session runs.').waitFor()
  await page.context().close()
})

test('a list whose next page fails says so, and retries only on request', async () => {
  const page = await user.signedIn()
  const record = { session_id: 'brw_1', created_at: new Date().toISOString(), deleted_at: null, headless: true }
  const sessions = Array.from({ length: 5 }, (_value, index) => ({ ...record, session_id: `one-${index}` }))
  let failures = 0
  await page.route(/\/dashboard\/api\/browsers\?/, (route) => {
    const isFirst = new URL(route.request().url()).searchParams.get('offset') === '0'
    if (isFirst) return route.fulfill({ json: sessions, headers: { 'x-has-more': 'true', 'x-next-offset': '5' } })
    failures += 1
    return route.fulfill({ status: 403, json: refusal })
  })
  await page.getByRole('searchbox').fill('one')
  await page.getByRole('alert').getByText(refusal.message).waitFor()
  await page.getByRole('link', { name: 'one-4' }).waitFor()
  await isAccessible(page, 'next-page-failed')
  // A change event meanwhile reloads the whole list.
  assert.ok(failures <= 5, `${failures} requests`)

  await page.unroute(/\/dashboard\/api\/browsers\?/)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByText('No session matches.').waitFor()
  await page.context().close()
})

test('a sign-in that was ended elsewhere leads to the sign-in page', async () => {
  const page = await user.signedIn()
  await page.context().clearCookies()
  await page.getByRole('navigation').getByRole('link', { name: 'Proxies' }).click()
  await page.getByLabel('API key').waitFor()
  await page.context().close()
})

test('a form focuses its first error, and Escape closes it and restores the focus', async () => {
  const page = await user.signedIn()
  await openPage(page, 'Proxies')
  const opener = page.getByRole('button', { name: 'New proxy' })
  await opener.focus()
  await page.keyboard.press('Enter')
  const form = page.getByRole('dialog')
  await form.getByRole('button', { name: 'Create' }).focus()
  await page.keyboard.press('Enter')

  const fault = page.locator(':focus[aria-invalid=true]')
  await fault.waitFor()
  const note = await fault.getAttribute('aria-describedby')
  assert.match((await page.locator(`[id="${note}"]`).textContent()) ?? '', /\S/)
  await page.keyboard.press('Escape')
  await form.waitFor({ state: 'detached' })
  await page.locator('button:focus', { hasText: 'New proxy' }).waitFor()
  await page.context().close()
})

test('every dialog of the menu can be opened, used and closed with the keyboard', deepOnly, async () => {
  const page = await user.signedIn()
  const menu = page.getByRole('navigation').locator('a[href^="/dashboard/"]')
  for (const title of await menu.allTextContents()) {
    await openPage(page, title)
    const openers = page.locator('header.page button')
    for (let index = 0; index < (await openers.count()); index++) {
      await openers.nth(index).focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor()
      const seen = new Set<string>()
      for (let step = 0; step < 80; step++) {
        await page.keyboard.press('Tab')
        const at = await page.evaluate<string>(
          "document.activeElement?.closest('dialog') ? document.activeElement.outerHTML.slice(0, 120) : ''",
        )
        seen.add(at)
      }
      assert.ok(seen.size > 2, `${title}: ${[...seen]}`)
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
  }
  await page.context().close()
})

test('no page breaks its own policy', () => {
  assert.deepEqual(user.refusals, [])
})
