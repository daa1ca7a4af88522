import { Balancer } from './servers/balancer.ts'
import { freePort, SharedStorage } from './shared-storage.ts'

interface StartOptions {
  readonly dataFolder?: string
  readonly flags?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

interface StartedServer extends AsyncDisposable {
  readonly url: string
  readonly dataFolder: string
}

/** Several berths on one database, behind one address whose connections go to each of them in turn. */
export class SharedBerths<Server extends StartedServer> implements AsyncDisposable {
  readonly storage: SharedStorage
  readonly #startOne: (options: StartOptions) => Promise<Server>
  readonly #balancer: Balancer
  readonly #servers: Server[] = []
  /** Kept, because they own their data folders. */
  readonly #ended: Server[] = []
  readonly #portOf = new Map<Server, number>()

  private constructor(
    startOne: (options: StartOptions) => Promise<Server>,
    storage: SharedStorage,
    balancer: Balancer,
  ) {
    this.#startOne = startOne
    this.storage = storage
    this.#balancer = balancer
  }

  static async open<Server extends StartedServer>(
    startOne: (options: StartOptions) => Promise<Server>,
  ): Promise<SharedBerths<Server>> {
    const storage = await SharedStorage.open(await startOne({}))
    return new SharedBerths(startOne, storage, await Balancer.open())
  }

  /** The address shared by all. */
  get url(): string {
    return this.#balancer.url
  }

  /** Starts one more server or, with the data folder and port of a server that has ended, its successor. */
  async start({ flags = [], environment = {}, ...options }: StartOptions = {}, before?: Server): Promise<Server> {
    const port = (before && this.#portOf.get(before)) ?? (await freePort())
    if (before) this.#ended.push(...this.#servers.splice(this.#servers.indexOf(before), 1))
    const server = await this.#startOne({
      ...options,
      ...(before && { dataFolder: before.dataFolder }),
      flags: [...flags, '--port', `${port}`, '--server-address', `http://127.0.0.1:${port}`],
      environment: { ...this.storage.environment, ...environment },
    })
    this.#servers.push(server)
    this.#portOf.set(server, port)
    this.useAll()
    return server
  }

  /** Makes the balancer use only these servers, as if it had noticed that the others are gone. */
  use(servers: readonly Server[]): void {
    this.#balancer.use(servers.flatMap((server) => this.#portOf.get(server) ?? []))
  }

  useAll(): void {
    this.use(this.#servers)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of [...this.#servers, ...this.#ended]) await server[Symbol.asyncDispose]()
    await this.#balancer[Symbol.asyncDispose]()
    await this.storage[Symbol.asyncDispose]()
  }
}
