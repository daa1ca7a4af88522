import type { ClientRequestOptions, IRequestClient, OPConnect } from '@1password/connect'
import { z } from 'zod'
import {
  type ProviderClient,
  ProviderFailure,
  type ProviderItem,
  type ProviderLogin,
  type ProviderVault,
} from './provider-client.ts'

const maxAnswerBytes = 8 * 1024 * 1024
const maxVaults = 200
const vaultsAtOnce = 4

const Vaults = z.array(z.object({ id: z.string().min(1), name: z.string() }))
const Items = z.array(
  z.object({
    id: z.string().min(1),
    title: z.string().nullish(),
    urls: z.array(z.object({ href: z.string().nullish() })).nullish(),
  }),
)

const OpenItem = z.object({
  fields: z
    .array(
      z.object({
        label: z.string().nullish(),
        purpose: z.string().nullish(),
        type: z.string().nullish(),
        value: z.string().nullish(),
      }),
    )
    .nullish(),
})

export interface OnePasswordOptions {
  /** The URL of the operator's Connect server, if there is one. */
  readonly connectUrl: string | undefined
  /** The time limit of a whole call, however many requests it needs. */
  readonly limitMilliseconds: number
}

/** Uses 1Password's client library with a Connect server. */
export class OnePasswordClient implements ProviderClient {
  readonly #options: OnePasswordOptions

  constructor(options: OnePasswordOptions) {
    this.#options = options
  }

  async listVaults(token: string): Promise<readonly ProviderVault[]> {
    return vaultsOf(await this.#connect(token))
  }

  async listItems(token: string): Promise<readonly ProviderItem[]> {
    const connect = await this.#connect(token)
    const open = [...(await vaultsOf(connect))]
    if (open.length > maxVaults) throw new ProviderFailure(`The token gives access to more than ${maxVaults} vaults.`)
    const items: ProviderItem[] = []
    const work = async () => {
      for (let vault = open.shift(); vault; vault = open.shift()) items.push(...(await itemsOf(connect, vault)))
    }
    await Promise.all(Array.from({ length: vaultsAtOnce }, work))
    return items.toSorted((one, other) => pathOf(one).localeCompare(pathOf(other)))
  }

  async readLogin(token: string, item: ProviderItem): Promise<ProviderLogin> {
    const { fields } = checked(OpenItem, await (await this.#connect(token)).getItemById(item.vault.id, item.id))
    const values = new Map<string, string>()
    let totpSecret: string | undefined
    for (const { label, purpose, type, value } of fields ?? []) {
      if (!value) continue
      if (type === 'OTP') totpSecret ??= value
      else if (purpose === 'USERNAME') values.set('username', value)
      else if (purpose === 'PASSWORD') values.set('password', value)
      else if (label && purpose !== 'NOTES' && !values.has(label)) values.set(label, value)
    }
    return { values, totpSecret }
  }

  async #connect(token: string): Promise<OPConnect> {
    const { connectUrl, limitMilliseconds } = this.#options
    if (connectUrl === undefined) {
      throw new ProviderFailure(
        'This service has no 1Password Connect server. The operator has to configure its address.',
      )
    }
    // Imported on demand: its HTTP client, which is not used, takes a sixth of the time to load the server.
    const { OnePasswordConnect } = await import('@1password/connect')
    const httpClient = new BoundedRequests(AbortSignal.timeout(limitMilliseconds), limitMilliseconds)
    // Without the trailing slash, the library would drop the last segment of the path.
    return OnePasswordConnect({ serverURL: `${connectUrl.replace(/\/$/, '')}/`, token, httpClient })
  }
}

function pathOf({ vault, title }: ProviderItem): string {
  return `${vault.name}/${title}`
}

async function vaultsOf(connect: OPConnect): Promise<readonly ProviderVault[]> {
  return checked(Vaults, await connect.listVaults())
}

async function itemsOf(connect: OPConnect, vault: ProviderVault): Promise<ProviderItem[]> {
  const items = checked(Items, await connect.listItems(vault.id))
  return items.map(({ id, title, urls }) => ({
    id,
    title: title ?? '',
    vault,
    urls: (urls ?? []).flatMap(({ href }) => href ?? []),
  }))
}

function checked<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw notConnect(result.error)
}

function notConnect(cause: unknown): ProviderFailure {
  return new ProviderFailure('The response of the Connect server is not that of 1Password Connect.', { cause })
}

/** Replaces the library's HTTP client, which follows redirects, reads without limit and limits only single requests. */
class BoundedRequests implements IRequestClient {
  readonly defaultTimeout: number
  readonly #signal: AbortSignal

  constructor(signal: AbortSignal, limitMilliseconds: number) {
    this.#signal = signal
    this.defaultTimeout = limitMilliseconds
  }

  async request(method: string, url: string, { authToken }: ClientRequestOptions) {
    const response = await fetch(url, {
      method,
      headers: { authorization: `Bearer ${authToken}`, accept: 'application/json' },
      redirect: 'manual',
      signal: this.#signal,
    }).catch((error: Error) => this.#throwUnreachable(error))
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new ProviderFailure(refusal(response.status))
    }
    const text = await this.#read(response).catch((error: Error) => this.#throwUnreachable(error))
    try {
      return { status: response.status, data: JSON.parse(text) }
    } catch (cause) {
      throw notConnect(cause)
    }
  }

  async #read(response: Response): Promise<string> {
    const pieces: Uint8Array[] = []
    let bytes = 0
    for await (const piece of response.body ?? []) {
      bytes += piece.length
      if (bytes > maxAnswerBytes) throw new ProviderFailure('The response of the Connect server is too large.')
      pieces.push(piece)
    }
    return Buffer.concat(pieces).toString()
  }

  #throwUnreachable(error: Error): never {
    if (error instanceof ProviderFailure) throw error
    const reason = this.#signal.aborted
      ? `The Connect server did not answer within ${Math.ceil(this.defaultTimeout / 1000)} seconds.`
      : 'The Connect server cannot be reached.'
    throw new ProviderFailure(reason, { cause: error })
  }
}

function refusal(status: number): string {
  if (status === 401 || status === 403) return 'The Connect server refuses the token.'
  return `The Connect server answers with the status ${status}.`
}
