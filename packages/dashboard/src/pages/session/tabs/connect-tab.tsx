import type { Browser } from '@berth/contract/browsers/browser.ts'
import { CopyButton } from '../../../components/copy-button.tsx'
import type { TabProps } from './tab-props.ts'

/**
 * Code that connects to the session with each client. Addresses contain the session's token; no snippet contains an API
 * key.
 */
const snippets: Readonly<Record<string, (session: Browser) => string>> = {
  'CDP address': ({ cdp_ws_url }) => cdp_ws_url,
  'BiDi address': ({ webdriver_ws_url }) => webdriver_ws_url,
  'SDK, TypeScript': ({ session_id }) => `import Kernel from '@onkernel/sdk'

const client = new Kernel({ baseURL: '${location.origin}', apiKey: process.env.KERNEL_API_KEY })
const session = await client.browsers.retrieve('${session_id}')`,
  'SDK, Python': ({ session_id }) => `from kernel import Kernel

client = Kernel(base_url="${location.origin}")
session = client.browsers.retrieve("${session_id}")`,
  'SDK, Go': ({ session_id }) => `client := kernel.NewClient(option.WithBaseURL("${location.origin}"))
session, err := client.Browsers.Get(ctx, "${session_id}", kernel.BrowserGetParams{})`,
  Playwright: ({ cdp_ws_url }) => `import { chromium } from 'playwright-core'

const browser = await chromium.connectOverCDP('${cdp_ws_url}')
const page = browser.contexts()[0].pages()[0]`,
  Puppeteer: ({ cdp_ws_url }) => `import puppeteer from 'puppeteer-core'

const browser = await puppeteer.connect({ browserWSEndpoint: '${cdp_ws_url}', defaultViewport: null })`,
  'Puppeteer by BiDi': ({ webdriver_ws_url }) => `import puppeteer from 'puppeteer-core'

const browser = await puppeteer.connect({ browserWSEndpoint: '${webdriver_ws_url}', protocol: 'webDriverBiDi' })`,
}

export function ConnectTab({ session }: TabProps) {
  return Object.entries(snippets).map(([title, write]) => {
    const text = write(session)
    return (
      <section className="snippet" key={title} aria-label={title}>
        <header className="snippet-head">
          <h3>{title}</h3>
          <CopyButton text={text} />
        </header>
        <pre tabIndex={0}>{text}</pre>
      </section>
    )
  })
}
