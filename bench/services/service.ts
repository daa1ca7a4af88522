/** The kind of session. Everything else is the default of the service. */
export type Shape = 'headless' | 'headful'

export interface BenchSession {
  /** The URL of the browser's CDP WebSocket, as clients get it. */
  readonly cdpUrl: string
  /** A request that reads the session. Absent when a service has no API. */
  readonly read?: { readonly url: string; readonly headers: Readonly<Record<string, string>> }
  /** The address of a page that shows the session and takes input. Absent when there is none. */
  readonly liveView?: () => Promise<string>
  /** Resolves when nothing of the session remains. */
  end(): Promise<void>
}

/** Assigns a process to a part. `browser` is Chromium, and everything else is what the service adds. */
export interface PartProcess {
  readonly pid: number
  readonly part: string
}

/**
 * A browser service on this host, as the measurements see it. The rest of the benchmark does not know which one it is.
 */
export interface Service {
  readonly name: string
  /** Resolves when clients can connect. */
  create(shape: Shape): Promise<BenchSession>
  /** All processes of the service and its sessions. */
  processes(): Promise<readonly PartProcess[]>
  /** Stops the service and its remaining sessions. */
  [Symbol.asyncDispose](): Promise<void>
}

export interface ServiceOptions {
  /** `host:port` of the pages that browsers load. A service that restricts outgoing connections must allow it. */
  readonly pagesAddress: string
}

export type StartService = (options: ServiceOptions) => Promise<Service>

export const browserPart = 'browser'
export const recorderPart = 'recorder'
