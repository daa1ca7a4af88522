/** The pages of the menu, in its order. Resources are described in `pages/resources/resources.tsx`. */
interface NavigationGroup {
  readonly title: string
  readonly entries: readonly { readonly to: string; readonly title: string }[]
}

export const navigation: readonly NavigationGroup[] = [
  {
    title: 'Browsers',
    entries: [
      { to: '/overview', title: 'Overview' },
      { to: '/sessions', title: 'Sessions' },
      { to: '/pools', title: 'Pools' },
      { to: '/profiles', title: 'Profiles' },
      { to: '/proxies', title: 'Proxies' },
      { to: '/extensions', title: 'Extensions' },
    ],
  },
  {
    title: 'Apps',
    entries: [
      { to: '/apps', title: 'Apps' },
      { to: '/deployments', title: 'Deployments' },
      { to: '/invocations', title: 'Invocations' },
    ],
  },
  {
    title: 'Secrets',
    entries: [
      { to: '/connections', title: 'Logins' },
      { to: '/credentials', title: 'Credentials' },
      { to: '/providers', title: 'Credential providers' },
      { to: '/vaults', title: 'Vaults' },
      { to: '/vault-providers', title: 'Vault provider configs' },
    ],
  },
  {
    title: 'Organization',
    entries: [
      { to: '/projects', title: 'Projects' },
      { to: '/api-keys', title: 'API keys' },
      { to: '/webhooks', title: 'Webhooks' },
      { to: '/otlp', title: 'OTLP destinations' },
      { to: '/audit', title: 'Audit log' },
      { to: '/audit-exports', title: 'Audit exports' },
    ],
  },
]
