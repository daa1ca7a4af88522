import { WebhookDeliveryStatus } from '@berth/contract/webhooks/webhook.ts'
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from '@tanstack/react-router'
import { MissingPage } from '../pages/missing-page.tsx'
import { SessionsPage } from '../pages/sessions/sessions-page.tsx'
import { SignInPage } from '../pages/sign-in-page.tsx'
import { BrokenPage } from './broken-page.tsx'

import { Shell } from './shell.tsx'

const root = createRootRoute()
const shell = createRoute({ getParentRoute: () => root, id: 'shell', component: Shell })

const start = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    // The address of a sign-in link contains its code.
    const isLink = location.hash.startsWith('#code=')
    throw redirect({ to: isLink ? '/sign-in' : '/sessions', ...(isLink && { hash: location.hash.slice(1) }) })
  },
})

const signIn = createRoute({ getParentRoute: () => root, path: '/sign-in', component: SignInPage })

export interface SessionsSearch {
  readonly query?: string
  readonly status?: 'active' | 'deleted' | 'all'
  readonly tags?: string
  readonly create?: boolean
}

const sessions = createRoute({
  getParentRoute: () => shell,
  path: '/sessions',
  component: SessionsPage,
  validateSearch: ({ query, status, tags, create }: Record<string, unknown>): SessionsSearch => ({
    ...(typeof query === 'string' && { query }),
    ...(typeof tags === 'string' && { tags }),
    ...((status === 'deleted' || status === 'all') && { status }),
    ...(create === true && { create }),
  }),
})

export interface SessionSearch {
  readonly tab?: string
  /** The time at which the replay starts. */
  readonly at?: number
}

const session = createRoute({
  getParentRoute: () => shell,
  path: '/sessions/$id',
  component: lazyRouteComponent(() => import('../pages/session/session-page.tsx'), 'SessionPage'),
  validateSearch: ({ tab, at }: Record<string, unknown>): SessionSearch => ({
    ...(typeof tab === 'string' && { tab }),
    ...(typeof at === 'number' && { at }),
  }),
})

const overview = createRoute({
  getParentRoute: () => shell,
  path: '/overview',
  component: lazyRouteComponent(() => import('../pages/overview/overview-page.tsx'), 'OverviewPage'),
})

const vault = createRoute({
  getParentRoute: () => shell,
  path: '/vaults/$vault',
  component: lazyRouteComponent(() => import('../pages/vault/vault-page.tsx'), 'VaultPage'),
})

const webhook = createRoute({
  getParentRoute: () => shell,
  path: '/webhooks/$webhook',
  component: lazyRouteComponent(() => import('../pages/webhook/webhook-page.tsx'), 'WebhookPage'),
  validateSearch: ({ status }: Record<string, unknown>): { readonly status?: WebhookDeliveryStatus } => {
    const known = WebhookDeliveryStatus.safeParse(status)
    return known.success ? { status: known.data } : {}
  },
})

const missing = createRoute({ getParentRoute: () => shell, path: '/$', component: MissingPage })

const resource = createRoute({
  getParentRoute: () => shell,
  path: '/$resource',
  component: lazyRouteComponent(() => import('../pages/resources/resource-page.tsx'), 'ResourcePage'),
  validateSearch: ({ query }: Record<string, unknown>): { readonly query?: string } =>
    typeof query === 'string' ? { query } : {},
})

export const router = createRouter({
  routeTree: root.addChildren([
    start,
    signIn,
    shell.addChildren([sessions, session, overview, vault, webhook, resource, missing]),
  ]),
  basepath: '/dashboard',
  defaultPreload: 'intent',
  defaultErrorComponent: BrokenPage,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
