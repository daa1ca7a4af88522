import { z } from 'zod'

/** What a session uses when no proxy is selected: none, or the operator's proxy in stealth sessions. */
export const BrowserProxyMode = z.enum(['direct', 'default']).meta({ id: 'BrowserProxyMode' })

const Selector = z.string().min(1)

/** A proxy of the project by its id or name, or a mode: exactly one of the three. */
export const BrowserProxyConfig = z
  .strictObject({ mode: BrowserProxyMode.optional(), id: Selector.optional(), name: Selector.optional() })
  .refine(hasOneField, { error: 'must have exactly one of mode, id and name' })
  .meta({ id: 'BrowserProxyConfig' })
export type BrowserProxyConfig = z.infer<typeof BrowserProxyConfig>

/** The proxy that a session uses. A selected proxy is reported by its id. */
export const BrowserProxy = z
  .object({ mode: BrowserProxyMode.optional(), id: z.string().optional() })
  .meta({ id: 'BrowserProxy' })

export const BrowserProxyRouteTarget = z
  .strictObject({ id: Selector.optional(), name: Selector.optional() })
  .refine(hasOneField, { error: 'must have exactly one of id and name' })
  .meta({ id: 'BrowserProxyRouteTarget' })
export type BrowserProxyRouteTarget = z.infer<typeof BrowserProxyRouteTarget>

/** The three fields in which a caller can select a proxy. */
export const proxySelection = {
  proxy: BrowserProxyConfig.optional(),
  proxy_id: z
    .string()
    .nullish()
    .meta({ deprecated: true, description: 'Use proxy. An empty string means none. Null changes nothing.' }),
  disable_default_proxy: z.boolean().optional().meta({ deprecated: true, description: 'Use proxy.mode.' }),
}

interface ProxySelection {
  readonly proxy?: BrowserProxyConfig | undefined
  readonly proxy_id?: string | null | undefined
  readonly disable_default_proxy?: boolean | undefined
}

/** The deprecated fields and `proxy` express the same setting, so only one form may be used. */
export function checkProxySelection(
  { proxy, proxy_id, disable_default_proxy }: ProxySelection,
  context: z.core.$RefinementCtx,
): void {
  const refuse = (field: string, other: string) =>
    context.addIssue({ code: 'custom', path: [field], message: `cannot be combined with ${other}` })
  if (proxy && (proxy_id ?? undefined) !== undefined) refuse('proxy', 'proxy_id')
  if (proxy && disable_default_proxy !== undefined) refuse('proxy', 'disable_default_proxy')
  if (proxy_id && disable_default_proxy) refuse('disable_default_proxy', 'proxy_id')
}

function hasOneField(selection: Readonly<Record<string, unknown>>): boolean {
  return Object.values(selection).filter((value) => value !== undefined).length === 1
}
