import { Balancer } from './balancer.ts'
import { freePort, SharedGround } from './shared-ground.ts'

interface StartOptions {
  readonly dataFolder?: string
  readonly flags?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

interface StartedServer extends AsyncDisposable {
  readonly url: string
  readonly dataFolder: string
}

/** Several berths on one database, behind one address that gives each connection to the next of them. */
export class SharedBerths<Server extends StartedServer> implements AsyncDisposable {
  readonly ground: SharedGround
  readonly #startOne: (options: StartOptions) => Promise<Server>
  readonly #balancer: Balancer
  readonly #servers: Server[] = []

  private constructor(
    startOne: (options: StartOptions) => Promise<Server>,
    ground: SharedGround,
    balancer: Balancer,
  ) {
    this.#startOne = startOne
    this.ground = ground
    this.#balancer = balancer
  }

  static async open<Server extends StartedServer>(
    startOne: (options: StartOptions) => Promise<Server>,
  ): Promise<SharedBerths<Server>> {
    const ground = await SharedGround.open(await startOne({}))
    return new SharedBerths(startOne, ground, await Balancer.open())
  }

  /** The address of all. */
  get url(): string {
    return this.#balancer.url
  }

  /** Starts one more server, or once more the one that was at this port. */
  async start({ flags = [], environment = {}, ...options }: StartOptions = {}, again?: number): Promise<Server> {
    const port = again ?? (await freePort())
    const server = await this.#startOne({
      ...options,
      flags: [...flags, '--port', `${port}`, '--server-address', `http://127.0.0.1:${port}`],
      environment: { ...this.ground.environment, BERTH_PUBLIC_URL: this.url, ...environment },
    })
    this.#servers.push(server)
    this.useAll()
    return server
  }

  /** The balancer gives connections to these alone, as when it has noticed that the others are gone. */
  use(servers: readonly Server[]): void {
    this.#balancer.use(servers.map(({ url }) => Number(new URL(url).port)))
  }

  useAll(): void {
    this.use(this.#servers)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) await server[Symbol.asyncDispose]()
    await this.#balancer[Symbol.asyncDispose]()
    await this.ground[Symbol.asyncDispose]()
  }
}
