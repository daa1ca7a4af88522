/* Playwright code that runs next to the browser of a session. The server validates what it returns. */

const openLimitMilliseconds = 30_000
const settleLimitMilliseconds = 10_000

/** Addresses of frames and scripts that identify a challenge. */
const challengeAddresses = [
  ['cloudflare', 'challenges\\.cloudflare\\.com|/cdn-cgi/challenge-platform/h/'],
  ['datadome', 'captcha-delivery\\.com'],
  ['imperva', '_Incapsula_Resource'],
  ['human', 'captcha\\.px-cdn\\.net|px-captcha|perimeterx\\.net'],
  ['aws waf', 'captcha\\.awswaf\\.com|challenge\\.awswaf\\.com|token\\.awswaf\\.com'],
  ['hcaptcha', 'hcaptcha\\.com/captcha'],
  ['recaptcha', 'recaptcha/(api2|enterprise)/(anchor|bframe)'],
  ['arkose', 'arkoselabs\\.com|funcaptcha\\.com'],
  ['kasada', '/149e9513-01fa-4fb0-aad4-566afd725d1b/'],
] as const
const challengeHeaders = ['cf-mitigated', 'x-vercel-mitigated', 'x-amzn-waf-action', 'x-datadome-isbot'] as const

/** Opens the URL, waits until its page is stable, and returns a `Visit`. */
export function openScript(url: string): string {
  return `
const addresses = ${JSON.stringify(challengeAddresses)}
const headerNames = ${JSON.stringify(challengeHeaders)}
let last
const note = (response) => {
  const request = response.request()
  if (request.isNavigationRequest() && request.frame() === page.mainFrame()) last = response
}
page.on('response', note)
let failure = null
try {
  await page.goto(${JSON.stringify(url)}, { waitUntil: 'domcontentloaded', timeout: ${openLimitMilliseconds} })
} catch (error) {
  const message = String(error && error.message)
  const isDownload = /Download is starting|ERR_ABORTED/.test(message) && last
  if (!isDownload) failure = /(ERR_[A-Z0-9_]+)/.exec(message)?.[1] ?? (/Timeout/i.test(message) ? 'TIMEOUT' : 'FAILED')
}
const read = () => page.evaluate(() => {
  const isVisible = (element) => element.checkVisibility?.() ?? true
  const shown = (selector) => [...document.querySelectorAll(selector)].filter(isVisible).length
  const scripts = [...document.querySelectorAll('iframe[src], script[src]')].slice(0, 300)
  return {
    isReady: document.readyState === 'complete',
    title: document.title.slice(0, 1000),
    text: (document.body?.innerText ?? '').slice(0, 20000),
    hasPasswordField: shown('input[type=password]') > 0,
    media: shown('img, canvas, video, svg, object, embed'),
    addresses: scripts.map((element) => element.src.slice(0, 500)),
  }
}).catch(() => undefined)
const until = Date.now() + ${settleLimitMilliseconds}
let seen
for (let same = 0; failure === null && Date.now() < until; ) {
  const next = await read()
  const isSame = next && seen && next.text === seen.text && next.title === seen.title
  same = isSame ? same + 1 : 0
  seen = next ?? seen
  const isBlank = !next || (next.text.trim() === '' && next.media === 0)
  if (next?.isReady && same >= (isBlank ? 8 : 3)) break
  await new Promise((resolve) => setTimeout(resolve, 400))
}
const headers = last?.headers() ?? {}
const found = addresses.filter(([, pattern]) => seen?.addresses.some((address) => new RegExp(pattern).test(address)))
const type = headers['content-type'] ?? 'text/html'
return {
  status: last?.status() ?? null,
  failure,
  isPage: /html|xml/.test(type),
  title: seen?.title ?? '',
  text: seen?.text ?? '',
  challenges: [
    ...headerNames.filter((name) => headers[name] !== undefined).map((name) => 'header ' + name),
    ...found.map(([name]) => name),
  ],
  hasPasswordField: seen?.hasPasswordField ?? false,
  media: seen?.media ?? 0,
}`
}

/** The elements of a page for a model. The number of an element is its index in this list. */
const elements = `
const elements = async () => {
  const all = await page.locator('a[href], button, input:not([type=hidden]), select, textarea, [role=button], [role=link]').all()
  const shown = []
  for (const element of all.slice(0, 300)) {
    if (shown.length === 60) break
    if (await element.isVisible().catch(() => false)) shown.push(element)
  }
  return shown
}`

/** Returns what a model needs to know about the page: a `PageView`. */
export function viewScript(): string {
  return `${elements}
const described = []
for (const element of await elements()) {
  described.push(await element.evaluate((node) => {
    const name = node.getAttribute('aria-label') || node.innerText || node.value || node.placeholder || node.name || ''
    return (node.tagName.toLowerCase() + (node.type ? ' ' + node.type : '') + ': ' + name.trim().replace(/\\s+/g, ' ')).slice(0, 120)
  }, undefined, { timeout: 2000 }).catch(() => 'gone'))
}
return {
  url: page.url().slice(0, 2048),
  title: (await page.title()).slice(0, 1000),
  text: (await page.evaluate(() => document.body?.innerText ?? '')).slice(0, 6000),
  elements: described,
}`
}

export type PageAction =
  | { readonly action: 'click'; readonly element: number }
  | { readonly action: 'fill'; readonly element: number; readonly text: string }
  | { readonly action: 'open'; readonly url: string }

/** Performs one step, and returns when the page has loaded its result. */
export function actScript(action: PageAction): string {
  const one = 'element' in action ? `const element = (await elements())[${action.element}]` : ''
  const missing = "if (!element) return { done: false, reason: 'there is no such element' }"
  const step = {
    click: `${one}\n${missing}\nawait element.click({ timeout: 8000 })`,
    fill: `${one}\n${missing}\nawait element.fill(${JSON.stringify('text' in action ? action.text : '')}, { timeout: 8000 })`,
    open: `await page.goto(${JSON.stringify('url' in action ? action.url : '')}, { waitUntil: 'domcontentloaded', timeout: ${openLimitMilliseconds} })`,
  }[action.action]
  return `${elements}
try {
  ${step}
} catch (error) {
  return { done: false, reason: String(error && error.message).slice(0, 300) }
}
await page.waitForLoadState('load', { timeout: 8000 }).catch(() => {})
await page.waitForTimeout(300)
return { done: true, reason: '' }`
}
