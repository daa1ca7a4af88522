import type { SolvableCaptchaType } from '@berth/contract/agent/captcha-types.ts'
import type { CdpPipe } from '../../browser/cdp-pipe.ts'
import { captchaTypeOf } from './captcha-page.ts'

/** The elements by which pages embed challenges, and the fields that receive the answer. */
const widgets: Readonly<Record<SolvableCaptchaType, { readonly element: string; readonly fields: readonly string[] }>> =
  {
    hcaptcha: { element: '.h-captcha', fields: ['h-captcha-response', 'g-recaptcha-response'] },
    recaptcha_v2: { element: '.g-recaptcha', fields: ['g-recaptcha-response'] },
    turnstile: { element: '.cf-turnstile', fields: ['cf-turnstile-response'] },
  }

const keyPattern = /^[\w.-]{1,200}$/

/** The site key in the address of the challenge's frame. */
export function siteKeyIn(type: SolvableCaptchaType, url: string): string | undefined {
  if (!URL.canParse(url)) return undefined
  const { searchParams, hash, pathname } = new URL(url)
  const keys = {
    hcaptcha: new URLSearchParams(hash.slice(1)).get('sitekey') ?? searchParams.get('sitekey'),
    recaptcha_v2: searchParams.get('k'),
    turnstile: pathname.split('/').find((part) => /^[0-9]x[\w-]{10,}$/.test(part)),
  }
  return validKey(keys[type])
}

function validKey(key: string | null | undefined): string | undefined {
  return key && keyPattern.test(key) ? key : undefined
}

interface WidgetOptions {
  readonly pipe: CdpPipe
  readonly sessionId: string
  readonly limitMilliseconds: number
  readonly type: SolvableCaptchaType
}

/** The site key in the page. */
export async function findSiteKey({ type, ...options }: WidgetOptions): Promise<string | undefined> {
  const expression = `(() => {
    const widget = document.querySelector(${JSON.stringify(`${widgets[type].element}[data-sitekey]`)})
    return {
      key: widget?.dataset.sitekey,
      sources: [...document.querySelectorAll('iframe')].slice(0, 200).map(({ src }) => src),
    }
  })()`
  const found = (await evaluate(expression, options)) as { readonly key?: string; readonly sources: readonly string[] }
  const inFrames = found.sources.flatMap((source) =>
    captchaTypeOf(source) === type ? (siteKeyIn(type, source) ?? []) : [],
  )
  return validKey(found.key) ?? inFrames[0]
}

/**
 * Writes the answer into the fields of the page, creates the field if it is missing, and calls the callback that the
 * element names. Returns false if the page has neither field nor element.
 */
export async function enterToken(token: string, { type, ...options }: WidgetOptions): Promise<boolean> {
  const { element, fields } = widgets[type]
  const expression = `((selector, names, token) => {
    const find = () => names.flatMap((name) => [...document.getElementsByName(name)])
    const widget = document.querySelector(selector)
    if (find().length === 0 && widget) {
      const field = Object.assign(document.createElement('textarea'), { name: names[0], hidden: true })
      widget.append(field)
    }
    for (const field of find()) {
      field.value = token
      for (const type of ['input', 'change']) field.dispatchEvent(new Event(type, { bubbles: true }))
    }
    const callback = globalThis[widget?.dataset.callback]
    if (typeof callback === 'function') setTimeout(() => callback(token))
    return find().length > 0
  })(${JSON.stringify(element)}, ${JSON.stringify(fields)}, ${JSON.stringify(token)})`
  return (await evaluate(expression, options)) === true
}

/** In the page's main world, which contains its callbacks. */
async function evaluate(
  expression: string,
  { pipe, sessionId, limitMilliseconds }: Omit<WidgetOptions, 'type'>,
): Promise<unknown> {
  const destination = { sessionId, limitMilliseconds }
  const { result, exceptionDetails } = await pipe.send(
    'Runtime.evaluate',
    { expression, returnByValue: true },
    destination,
  )
  if (exceptionDetails) throw new Error(exceptionDetails.text)
  return result.value
}
