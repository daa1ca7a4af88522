/** A failure that the owner of the provider can fix. The message gives the reason. */
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

/** The values of a login item. */
export interface ProviderLogin {
  readonly values: ReadonlyMap<string, string>
  /** The base32 seed or `otpauth:` URI of one-time codes. */
  readonly totpSecret: string | undefined
}

/** The queries to a provider. Every call ends in limited time and rejects with a ProviderFailure. */
export interface ProviderClient {
  listVaults(token: string): Promise<readonly ProviderVault[]>
  listItems(token: string): Promise<readonly ProviderItem[]>
  readLogin(token: string, item: ProviderItem): Promise<ProviderLogin>
}
