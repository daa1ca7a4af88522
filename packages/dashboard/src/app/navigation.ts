import { lists } from '../strings/lists.ts'
import { words } from '../strings/shell.ts'

/** The pages of the menu, in its order. Resources are described in `pages/resources/resources.tsx`. */
interface NavigationGroup {
  readonly title: string
  readonly entries: readonly { readonly to: string; readonly title: string }[]
}

export const navigation: readonly NavigationGroup[] = [
  {
    title: words.groups.browsers,
    entries: [
      { to: '/overview', title: words.overview },
      { to: '/sessions', title: words.sessions },
      { to: '/pools', title: lists.pools.title },
      { to: '/profiles', title: lists.profiles.title },
      { to: '/proxies', title: lists.proxies.title },
      { to: '/extensions', title: lists.extensions.title },
    ],
  },
  {
    title: words.groups.apps,
    entries: [
      { to: '/apps', title: lists.apps.title },
      { to: '/deployments', title: lists.deployments.title },
      { to: '/invocations', title: lists.invocations.title },
    ],
  },
  {
    title: words.groups.secrets,
    entries: [
      { to: '/connections', title: lists.connections.title },
      { to: '/credentials', title: lists.credentials.title },
      { to: '/providers', title: lists.providers.title },
      { to: '/vaults', title: lists.vaults.title },
      { to: '/vault-providers', title: lists['vault-providers'].title },
    ],
  },
  {
    title: words.groups.organization,
    entries: [
      { to: '/projects', title: lists.projects.title },
      { to: '/api-keys', title: lists['api-keys'].title },
      { to: '/webhooks', title: lists.webhooks.title },
      { to: '/otlp', title: lists.otlp.title },
      { to: '/audit', title: lists.audit.title },
      { to: '/audit-exports', title: lists['audit-exports'].title },
    ],
  },
]
