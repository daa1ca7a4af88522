import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import type { CheckLoginReply, LoginOutcome } from '@berth/contract/agent/login/login-endpoints.ts'
import type { LoginPage } from '@berth/contract/agent/login/login-page.ts'
import type { loginRoutes } from '@berth/contract/agent/login/login-routes.ts'
import { GalleryAgent } from '../testing/login-gallery/gallery-agent.ts'
import { password, user } from '../testing/login-gallery/site.ts'

/* What the driver refuses, and how it checks an earlier login. All tests share one browser. */

let started: GalleryAgent

before(async () => {
  started = await GalleryAgent.start()
})
after(() => started?.[Symbol.asyncDispose]())
afterEach(() => started.setCookies())

const arrivals = () => started.gallery.arrivals
const ask = <Answer>(name: keyof typeof loginRoutes, site: string, body: object) =>
  started.ask<Answer>(name, { allowed_domains: [`${site}.test`], ...body })
const open = (site: string) => ask<LoginPage>('openLogin', site, { domain: `${site}.test` })
const submit = (site: string, page: LoginPage, values: readonly string[], more: object = {}) =>
  ask<LoginOutcome>('submitLogin', site, {
    page_key: page.page_key,
    values: values.map((value, index) => ({ ref: `f${index + 1}`, value })),
    ...more,
  })

test('a submitted page accepts no further input', async () => {
  const site = 'single-form'
  const page = await open(site)
  const wrong = await submit(site, page, [user, 'Wrong-Donkey-8?'])
  const begun = arrivals().length

  const again = await submit(site, page, [user, password])
  const chosen = await ask<LoginOutcome>('chooseLogin', site, { page_key: page.page_key, ref: 'c1' })

  assert.equal(wrong.page.problem, 'credentials_invalid')
  assert.deepEqual([again.outcome, again.typed, chosen.outcome], ['stale', false, 'stale'])
  assert.equal(arrivals().length, begun)
})

test('a field or a choice that the page does not have is refused, and nothing is typed into the others', async () => {
  const site = 'single-form'
  const page = await open(site)
  const begun = arrivals().length
  const values = [
    { ref: 'f2', value: password },
    { ref: 'f9', value: user },
  ]

  const typed = await ask<LoginOutcome>('submitLogin', site, { page_key: page.page_key, values })
  const chosen = await ask<LoginOutcome>('chooseLogin', site, { page_key: page.page_key, ref: 'c7' })

  assert.deepEqual([typed.outcome, typed.typed, chosen.outcome], ['unknown_ref', false, 'unknown_ref'])
  assert.equal(arrivals().length, begun)
})

for (const site of ['wrong-password', 'http-basic-wrong']) {
  test(`a password is typed a second time only if a person has entered it again: ${site}`, async () => {
    const secret = 'Wrong-Donkey-8?'
    const count = () => arrivals().filter((arrival) => arrival.host === `${site}.test`).length
    const first = await submit(site, await open(site), [user, secret])
    const afterFirst = count()

    const second = await submit(site, first.page, [user, secret])
    const afterSecond = count()
    const third = await submit(site, second.page, [user, secret], { is_new_input: true })

    assert.deepEqual([first.outcome, second.outcome, third.outcome], ['done', 'already_typed', 'done'])
    assert.deepEqual([afterFirst, afterSecond, count()], [1, 1, 2])
  })
}

test('a check reports whether an earlier login is still valid, and types nothing', async () => {
  const site = 'quiet-account'
  const { page } = await submit(site, await open(site), [user, password])
  assert.ok(page.evidence, JSON.stringify(page))
  const check = () => ask<CheckLoginReply>('checkLogin', site, { domain: `${site}.test`, evidence: page.evidence })
  const begun = arrivals().length

  const held = await check()
  await started.setCookies()
  const lost = await check()

  assert.deepEqual([held.logged_in, lost.logged_in], ['yes', 'no'])
  assert.equal(arrivals().length, begun)
})

test('a check of a site that asks the browser for a password reports that the login is not valid', async () => {
  const check = await ask<CheckLoginReply>('checkLogin', 'http-basic', { domain: 'http-basic.test' })

  assert.equal(check.logged_in, 'no')
})

const deepOnly = { skip: process.env.BERTH_DEEP === '1' ? false : 'only with ./berth test --deep' }

test('a page in an endless loop is reported as loading, within the time limit', deepOnly, async () => {
  const site = 'endless'

  const page = await ask<LoginPage>('openLogin', site, { domain: `${site}.test`, timeout_ms: 6_000 })

  assert.equal(page.state, 'loading')
  // The next login does not share the browser.
  assert.equal((await open('single-form')).state, 'form')
})
