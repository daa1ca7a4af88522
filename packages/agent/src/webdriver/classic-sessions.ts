import type { IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { machinePorts } from '@berth/contract/agent/machine/machine-network.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { endsNow } from '../browser/child-program.ts'
import type { DevToolsEndpoint } from '../browser/chromium.ts'
import { Chromedriver, type DriverCommand } from './chromedriver.ts'
import { attachedCapabilities, clientCapabilities } from './classic-capabilities.ts'
import { WebDriverError } from './webdriver-error.ts'

const maxSessions = 16
/** chromedriver queries the front tab, which may hang. */
const startLimitMilliseconds = 30_000
/** A vanished client leaves its session behind; an active one sends commands, or has a BiDi connection. */
const idleLimitMilliseconds = 10 * 60 * 1000
/** How long chromedriver keeps running after the last session. */
const driverIdleMilliseconds = 30_000
const maxAttempts = 3

type Driver = Pick<Chromedriver, 'ended' | 'send' | 'ask' | 'kill'>

interface ClassicSession {
  readonly driver: Driver
  /** Commands under way and BiDi connections. */
  uses: number
  idle: NodeJS.Timeout | undefined
}

interface NewSession {
  readonly value: { readonly sessionId: string; readonly capabilities: object }
}

interface ClassicSessionsOptions {
  /** Of a browser with an open page. */
  readonly endpoint: () => Promise<DevToolsEndpoint>
  readonly homeFolder: string
  readonly logger: Logger
  readonly idleLimit?: number
  readonly startLimit?: number
  readonly startDriver?: (homeFolder: string) => Promise<Driver>
}

/**
 * The classic WebDriver sessions of this machine. Each is attached to the running browser and ends with `DELETE`, with
 * the browser, with chromedriver, or when it is idle; the browser and its pages continue.
 */
export class ClassicSessions {
  readonly #options: ClassicSessionsOptions
  readonly #sessions = new Map<string, ClassicSession>()
  readonly #endListeners: ((id: string) => void)[] = []
  #driver: Promise<Driver> | undefined
  #driverIdle: NodeJS.Timeout | undefined
  #starting = 0

  constructor(options: ClassicSessionsOptions) {
    this.#options = options
  }

  /** Calls the listener for each session that has ended, for any reason. */
  onEnd(listener: (id: string) => void): void {
    this.#endListeners.push(listener)
  }

  has(id: string): boolean {
    return this.#sessions.has(id)
  }

  get isFull(): boolean {
    return this.#sessions.size + this.#starting >= maxSessions
  }

  /** The response to `POST /session`. */
  async create(parameters: unknown): Promise<NewSession> {
    if (this.isFull) {
      throw new WebDriverError(
        'session not created',
        `there are ${maxSessions} WebDriver sessions in this browser already; DELETE one of them`,
      )
    }
    this.#starting += 1
    clearTimeout(this.#driverIdle)
    let hasGivenUp = false
    // Counts against the limit until chromedriver has finished.
    const created = this.#create(parameters).finally(() => {
      this.#starting -= 1
      this.#stopDriverWhenIdle()
    })
    // The caller that awaits it handles the rejection.
    created.then(({ value }) => (hasGivenUp ? this.end(value.sessionId) : undefined)).catch(() => {})
    try {
      return await Promise.race([created, tooLate(this.#options.startLimit ?? startLimitMilliseconds)])
    } catch (error) {
      hasGivenUp = true
      throw error
    }
  }

  /** Retries with the next browser or chromedriver if the current one dies. */
  async #create(parameters: unknown, attempts = maxAttempts): Promise<NewSession> {
    const { ended } = await this.#options.endpoint()
    const driver = await this.#runningDriver().catch((error: Error) => {
      throw new WebDriverError('session not created', error.message)
    })
    try {
      return await this.#createWith(driver, ended, parameters)
    } catch (error) {
      if (attempts > 1 && (await endsNow([ended, driver.ended]))) return this.#create(parameters, attempts - 1)
      throw error
    }
  }

  async #createWith(driver: Driver, browserEnded: Promise<unknown>, parameters: unknown): Promise<NewSession> {
    const body = Buffer.from(JSON.stringify(attachedCapabilities(parameters, machinePorts.devTools)))
    const answer = await driver.ask({ method: 'POST', path: '/session', body }).catch((error: Error) => {
      throw new WebDriverError('session not created', `chromedriver does not answer: ${error.message}`)
    })
    const { value } = JSON.parse(answer.body)
    if (answer.status !== 200) throw new WebDriverError(value.error, value.message, answer.status)
    const id = value.sessionId as string
    this.#sessions.set(id, { driver, uses: 0, idle: undefined })
    this.#leave(id)
    // chromedriver's session is useless after its browser has ended.
    void browserEnded.then(() => this.#forget(id))
    return { value: { sessionId: id, capabilities: clientCapabilities(value.capabilities) } }
  }

  /** Registers a use of the session; the returned function ends it, once. */
  enter(id: string): () => void {
    const session = this.#get(id)
    session.uses += 1
    clearTimeout(session.idle)
    let hasLeft = false
    return () => {
      if (hasLeft) return
      hasLeft = true
      session.uses -= 1
      this.#leave(id)
    }
  }

  /** Sends a command of the session; the caller reads the body of the response. */
  async send(id: string, command: DriverCommand, signal: AbortSignal): Promise<IncomingMessage> {
    const { driver } = this.#get(id)
    return driver.send(command, signal)
  }

  /** Ends the session, if it exists. */
  async end(id: string): Promise<void> {
    const session = this.#sessions.get(id)
    if (!session) return
    this.#forget(id)
    // All of its sessions end with it.
    await session.driver.ask({ method: 'DELETE', path: `/session/${id}` }).catch(() => {})
  }

  #get(id: string): ClassicSession {
    const session = this.#sessions.get(id)
    if (!session) throw new WebDriverError('invalid session id', `there is no WebDriver session ${id} in this browser`)
    return session
  }

  #leave(id: string): void {
    const session = this.#sessions.get(id)
    if (!session || session.uses > 0) return
    clearTimeout(session.idle)
    session.idle = setTimeout(() => void this.end(id), this.#options.idleLimit ?? idleLimitMilliseconds).unref()
  }

  #forget(id: string): void {
    const session = this.#sessions.get(id)
    if (!session) return
    clearTimeout(session.idle)
    this.#sessions.delete(id)
    for (const listener of this.#endListeners) listener(id)
    this.#stopDriverWhenIdle()
  }

  #runningDriver(): Promise<Driver> {
    if (this.#driver) return this.#driver
    const { startDriver = Chromedriver.start, homeFolder } = this.#options
    const driver = startDriver(homeFolder)
    this.#driver = driver
    const forget = (how: string, ended?: Driver) => {
      for (const [id, session] of [...this.#sessions]) if (session.driver === ended) this.#forget(id)
      if (this.#driver !== driver) return // It was stopped as idle.
      this.#driver = undefined
      this.#options.logger.warn({ how }, 'chromedriver has ended; the next WebDriver session starts it again')
    }
    driver.then(
      async (started) => forget(await started.ended, started),
      ({ message }: Error) => forget(message),
    )
    return driver
  }

  #stopDriverWhenIdle(): void {
    clearTimeout(this.#driverIdle)
    if (this.#sessions.size > 0 || this.#starting > 0) return
    this.#driverIdle = setTimeout(() => this.#stopDriver(), driverIdleMilliseconds).unref()
  }

  #stopDriver(): void {
    const driver = this.#driver
    this.#driver = undefined
    driver?.then((running) => running.kill()).catch(() => {}) // It did not start, so there is nothing to stop.
  }
}

async function tooLate(milliseconds: number): Promise<never> {
  await delay(milliseconds, undefined, { ref: false })
  throw new WebDriverError('session not created', `the browser did not answer within ${milliseconds / 1000} s`)
}
