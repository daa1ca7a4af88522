import assert from 'node:assert/strict'
import { Configuration, PlaywrightCrawler } from 'crawlee'
import { chromium } from 'playwright'

const { CDP_WS_URL, SITE } = process.env
// Crawlee supports only browsers that it launches, so its launcher connects instead.
const connect = () => chromium.connectOverCDP(CDP_WS_URL)
const launcher = Object.create(chromium, {
  launch: { value: connect },
  launchPersistentContext: { value: async () => (await connect()).contexts()[0] },
  name: { value: () => 'chromium' },
})
const titles = []
const crawler = new PlaywrightCrawler(
  {
    launchContext: { launcher },
    browserPoolOptions: { useFingerprints: false },
    maxConcurrency: 1,
    async requestHandler({ page, enqueueLinks }) {
      titles.push(await page.title())
      await enqueueLinks()
    },
  },
  new Configuration({ persistStorage: false, systemInfoV2: false }),
)
await crawler.run([`${SITE}/`])
assert.deepEqual(titles, ['Form', 'Second'])
await crawler.teardown()
