import type { CdpPipe } from '../../browser/cdp-pipe.ts'

export type CaptchaType = 'hcaptcha' | 'recaptcha_v2' | 'turnstile'

/** The frames in which the services show their challenges. */
const frames: readonly { readonly type: CaptchaType; readonly host: RegExp; readonly path: RegExp }[] = [
  { type: 'hcaptcha', host: /^(?:[\w-]+\.)*hcaptcha\.com$/, path: /^\/captcha\// },
  { type: 'recaptcha_v2', host: /^www\.(?:google\.com|recaptcha\.net)$/, path: /^\/recaptcha\/(?:api2|enterprise)\// },
  { type: 'turnstile', host: /^challenges\.cloudflare\.com$/, path: /^\/cdn-cgi\/challenge-platform\// },
]

export function captchaTypeOf(url: string): CaptchaType | undefined {
  if (!URL.canParse(url)) return undefined
  const { hostname, pathname, searchParams } = new URL(url)
  // The badge of a site without a challenge.
  if (searchParams.get('size') === 'invisible') return undefined
  return frames.find(({ host, path }) => host.test(hostname) && path.test(pathname))?.type
}

/** Runs in a world of its own, which the page cannot see. */
const script = `(() => {
  const isShown = (frame) => {
    const { width, height } = frame.getBoundingClientRect()
    return width > 10 && height > 10 && frame.checkVisibility({ visibilityProperty: true, opacityProperty: true })
  }
  const names = ['h-captcha-response', 'g-recaptcha-response', 'cf-turnstile-response']
  const answers = names.flatMap((name) => [...document.getElementsByName(name)])
  return {
    sources: [...document.querySelectorAll('iframe')].filter(isShown).slice(0, 200).map(({ src }) => src),
    isSolved: answers.some(({ value }) => value),
  }
})()`

export interface SeenCaptcha {
  readonly visible: readonly CaptchaType[]
  readonly isSolved: boolean
}

/** Which challenges a page shows, and whether it has an answer to one. */
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
  const { sources, isSolved } = result.value as { readonly sources: readonly string[]; readonly isSolved: boolean }
  return { visible: sources.flatMap((source) => captchaTypeOf(source) ?? []), isSolved }
}
