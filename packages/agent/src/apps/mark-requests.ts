import { invocationHeader } from '@berth/contract/apps/invocation-header.ts'

/**
 * Adds the current invocation to each request of this process to berth, so that new sessions belong to it
 * automatically. Clients keep a reference to `fetch`, so this must run before the app is loaded.
 */
export function markRequests(berthUrl: string, currentInvocation: () => string | undefined): void {
  const origin = URL.parse(berthUrl)?.origin
  const original = globalThis.fetch
  globalThis.fetch = (input, init) => {
    const url = URL.parse(input instanceof Request ? input.url : String(input))
    const invocation = currentInvocation()
    if (invocation === undefined || url?.origin !== origin) return original(input, init)
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    headers.set(invocationHeader, invocation)
    return original(input, { ...init, headers })
  }
}
