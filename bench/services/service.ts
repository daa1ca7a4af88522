/** What a session is asked to be; everything else is as the service has it when nothing is said. */
export type Shape = 'headless' | 'headful'

export interface BenchSession {
  /** Address of the browser's CDP websocket, as a client gets it. */
  readonly cdpUrl: string
  /** A request that reads the session; absent where a service has no API. */
  readonly read?: { readonly url: string; readonly headers: Readonly<Record<string, string>> }
  /** Resolves when nothing of the session is left. */
  end(): Promise<void>
}

/** Whose memory and time something is: `browser` is Chromium, all else is what the service adds to it. */
export interface PartProcess {
  readonly pid: number
  readonly part: string
}

/** A browser service that runs on this host, as the measurements see it: nothing else in the bench knows which it is. */
export interface Service {
  readonly name: string
  /** Resolves as soon as clients can connect. */
  create(shape: Shape): Promise<BenchSession>
  /** Every process of the service and of its sessions. */
  processes(): Promise<readonly PartProcess[]>
  /** Ends the service and what is left of its sessions. */
  [Symbol.asyncDispose](): Promise<void>
}

export interface ServiceOptions {
  /** `host:port` of the pages that browsers will load: a service that guards its way out has to allow it. */
  readonly pagesAddress: string
}

export type StartService = (options: ServiceOptions) => Promise<Service>

export const browserPart = 'browser'
