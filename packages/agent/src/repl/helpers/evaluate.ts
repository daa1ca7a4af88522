import type { AttachedTab } from './attached-tab.ts'

export interface JsOptions {
  readonly arg?: unknown
  readonly targetId?: string
}

interface RemoteResult {
  readonly result: { readonly value?: unknown; readonly objectId?: string }
  readonly exceptionDetails?: {
    readonly text: string
    readonly exception?: { readonly description?: string; readonly value?: unknown }
  }
}

/** Runs an expression or a function in the page, and returns its value as JSON can represent it. */
export async function js(tab: AttachedTab, code: unknown, { arg, targetId }: JsOptions = {}): Promise<unknown> {
  const expression =
    typeof code === 'function' ? `(${code})(${arg === undefined ? '' : JSON.stringify(arg)})` : String(code)
  const params = { expression, returnByValue: true, awaitPromise: true, userGesture: true }
  const answer: RemoteResult =
    targetId === undefined
      ? await tab.send('Runtime.evaluate', params)
      : await tab.sendTo(targetId, 'Runtime.evaluate', params)
  if (answer.exceptionDetails) throw new Error(messageOf(answer.exceptionDetails))
  return answer.result.value
}

/** The first element that the selector matches; undefined if there is none. */
export async function objectOf(tab: AttachedTab, selector: string): Promise<string | undefined> {
  const expression = `document.querySelector(${JSON.stringify(selector)})`
  const { result, exceptionDetails }: RemoteResult = await tab.send('Runtime.evaluate', { expression })
  if (exceptionDetails) throw new Error(messageOf(exceptionDetails))
  return result.objectId
}

function messageOf({ text, exception }: NonNullable<RemoteResult['exceptionDetails']>): string {
  return String(exception?.description?.split('\n    at ', 1)[0] ?? exception?.value ?? text)
}
