import { type SolvableCaptchaType, solvableCaptchaTypes } from '@berth/contract/agent/captcha-types.ts'
import type { CdpPipe } from '../../browser/cdp-pipe.ts'

export type CaptchaType = SolvableCaptchaType | ElementCaptchaType
/** Challenges that are elements of their page, without a frame. */
export type ElementCaptchaType = 'geetest' | 'press_and_hold'

/** The frames of the services' challenges. */
const frames: readonly { readonly type: SolvableCaptchaType; readonly host: RegExp; readonly path: RegExp }[] = [
  { type: 'hcaptcha', host: /^(?:[\w-]+\.)*hcaptcha\.com$/, path: /^\/captcha\// },
  { type: 'recaptcha_v2', host: /^www\.(?:google\.com|recaptcha\.net)$/, path: /^\/recaptcha\/(?:api2|enterprise)\// },
  { type: 'turnstile', host: /^challenges\.cloudflare\.com$/, path: /^\/cdn-cgi\/challenge-platform\// },
]

export function isSolvable(type: CaptchaType): type is SolvableCaptchaType {
  return (solvableCaptchaTypes as readonly string[]).includes(type)
}

export function captchaTypeOf(url: string): SolvableCaptchaType | undefined {
  if (!URL.canParse(url)) return undefined
  const { hostname, pathname, searchParams } = new URL(url)
  // The badge of a site without a challenge.
  if (searchParams.get('size') === 'invisible') return undefined
  return frames.find(({ host, path }) => host.test(hostname) && path.test(pathname))?.type
}

/** Hosts that serve such elements: GeeTest, and PerimeterX (now HUMAN). */
const elementHosts = /(?:^|\.)(?:geetest\.com|geevisit\.com|px-cdn\.net|px-cloud\.net|perimeterx\.net)$/

export function isElementCaptchaHost(name: string): boolean {
  return elementHosts.test(name.toLowerCase().replace(/\.$/, ''))
}

/** Runs in an isolated world, which the page cannot see. */
const script = `(() => {
  const isShown = (element) => {
    const { width, height } = element.getBoundingClientRect()
    return width > 10 && height > 10 && element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
  }
  const elements = {
    geetest: '[class^="geetest_"]',
    press_and_hold: '#px-captcha, [id^="px-captcha-"]',
  }
  const names = [
    'h-captcha-response', 'g-recaptcha-response', 'cf-turnstile-response', 'geetest_validate', 'geetest_seccode',
  ]
  const answers = names.flatMap((name) => [...document.getElementsByName(name)])
  const isPassed = document.querySelector('.geetest_lock_success, .geetest_radar_success')
  return {
    sources: [...document.querySelectorAll('iframe')].filter(isShown).slice(0, 200).map(({ src }) => src),
    elements: Object.keys(elements).filter((type) => [...document.querySelectorAll(elements[type])].some(isShown)),
    isSolved: Boolean(isPassed) || answers.some(({ value }) => value),
  }
})()`

interface PageContent {
  readonly sources: readonly string[]
  readonly elements: readonly ElementCaptchaType[]
  readonly isSolved: boolean
}

export interface SeenCaptcha {
  readonly visible: readonly CaptchaType[]
  readonly isSolved: boolean
}

/** Which challenges a page shows, and whether one of them is answered. */
export async function lookForCaptcha(
  pipe: CdpPipe,
  sessionId: string,
  limitMilliseconds: number,
): Promise<SeenCaptcha> {
  const destination = { sessionId, limitMilliseconds }
  const { frameTree } = await pipe.send('Page.getFrameTree', undefined, destination)
  const world = { frameId: frameTree.frame.id, worldName: 'telemetry' }
  const { executionContextId: contextId } = await pipe.send('Page.createIsolatedWorld', world, destination)
  const call = { expression: script, contextId, returnByValue: true }
  const { result } = await pipe.send('Runtime.evaluate', call, destination)
  const { sources, elements, isSolved } = result.value as PageContent
  return { visible: [...sources.flatMap((source) => captchaTypeOf(source) ?? []), ...elements], isSolved }
}
