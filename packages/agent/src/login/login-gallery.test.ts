import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startFakeEgress } from '../testing/fake-egress.ts'
import { Gallery, sites } from '../testing/login-gallery/gallery.ts'
import { logIn } from '../testing/login-gallery/scripted-user.ts'
import { evil } from '../testing/login-gallery/site.ts'
import { type StartedAgent, startAgent } from '../testing/start-agent.ts'

/*
 * Login pages in the shapes that sites use, all in one browser. Each is tried with the driver alone. The short form has one
 * of each kind; BERTH_LOGIN_SITES names others.
 */

const isDeep = process.env.BERTH_DEEP === '1'
const shortForm = [
  'single-form',
  'closed-shadow',
  'lang-ja',
  'oauth-popup',
  'boxes',
  'captcha-frame',
  'redirect-elsewhere',
  'honey-pots',
  'http-basic',
]
const chosen = process.env.BERTH_LOGIN_SITES?.split(',') ?? (isDeep ? undefined : shortForm)
const gallery = new Gallery()
let agent: StartedAgent
let egress: AsyncDisposable

before(async () => {
  agent = await startAgent()
  await agent.becomesReady()
  egress = await startFakeEgress(agent, (request, response) => {
    gallery.answer(request, response).catch((error: Error) => response.destroy(error))
  })
})
after(async () => {
  await egress?.[Symbol.asyncDispose]()
  await agent?.[Symbol.asyncDispose]()
})

for (const site of sites.filter(({ name }) => !chosen || chosen.includes(name))) {
  test(`the driver comes to a right end at ${site.name}`, async () => {
    const cdp = await agent.connect()
    await cdp.send('Storage.clearCookies')
    if (site.isLoggedInBefore) {
      await cdp.send('Storage.setCookies', {
        cookies: [{ name: 'session', value: 'before', domain: `${site.name}.test`, path: '/' }],
      })
    }
    cdp.terminate()
    const begun = gallery.arrivals.length

    const { page, problems, steps } = await logIn(agent, site, gallery)

    const told = steps.join('\n')
    assert.equal(page.state, site.ends, told)
    if (site.problem) assert.ok(problems.includes(site.problem), told)
    if (site.toldBefore) assert.ok(problems.includes(site.toldBefore), told)
    if (site.says) assert.match(told, site.says)
    const arrivals = gallery.arrivals.slice(begun)
    const places = new Set([`${site.name}.test`, ...(site.allowed ?? [])])
    assert.deepEqual(
      arrivals.filter(({ host }) => !places.has(host) || host === evil),
      [],
      told,
    )
    for (const secret of new Set(arrivals.map((arrival) => arrival.secret))) {
      assert.equal(
        arrivals.filter((arrival) => arrival.secret === secret).length,
        1,
        `${secret} was sent once\n${told}`,
      )
    }
    assert.ok(!told.includes('Correct-Horse'))
  })
}
