/** A failure of a provider that its owner can do something about; the message says what is wrong. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
}

export interface ProviderVault {
  readonly id: string
  readonly name: string
}

export interface ProviderItem {
  readonly id: string
  readonly title: string
  readonly vault: ProviderVault
  readonly urls: readonly string[]
}

/** What is asked of the outside. Every call ends within a bounded time, and rejects with a ProviderFailure. */
export interface ProviderClient {
  listVaults(token: string): Promise<readonly ProviderVault[]>
  listItems(token: string): Promise<readonly ProviderItem[]>
}
