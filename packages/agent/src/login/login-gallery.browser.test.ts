import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sites } from '../testing/login-gallery/gallery.ts'
import { GalleryAgent } from '../testing/login-gallery/gallery-agent.ts'
import { logIn } from '../testing/login-gallery/scripted-user.ts'
import { evil } from '../testing/login-gallery/site.ts'

/*
 * Login pages in many shapes, all in one browser. Only the driver is tested. The short form has one page of each kind;
 * BERTH_LOGIN_SITES names others.
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
let started: GalleryAgent

before(async () => {
  started = await GalleryAgent.start()
})
after(() => started?.[Symbol.asyncDispose]())

for (const site of sites.filter(({ name }) => !chosen || chosen.includes(name))) {
  test(`the driver reaches the expected result at ${site.name}`, async () => {
    const { gallery } = started
    const before = { name: 'session', value: 'before', domain: `${site.name}.test`, path: '/' }
    await started.setCookies(site.isLoggedInBefore ? [before] : [])
    const begun = gallery.arrivals.length

    const { page, problems, steps } = await logIn(started, site)

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
