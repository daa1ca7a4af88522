import { AppsV1Api, CoreV1Api, KubeConfig } from '@kubernetes/client-node'

/** Files with credentials may change: they are read again for a new set of connections. */
const connectionsMilliseconds = 10 * 60_000

export interface Apis {
  readonly core: CoreV1Api
  readonly apps: AppsV1Api
}

export function openApis(config: KubeConfig): Apis {
  return { core: config.makeApiClient(CoreV1Api), apps: config.makeApiClient(AppsV1Api) }
}

type DispatcherArguments = Parameters<KubeConfig['createDispatcherOptions']>
type DispatcherOptions = ReturnType<KubeConfig['createDispatcherOptions']>
type RequestContext = Parameters<KubeConfig['applySecurityAuthentication']>[0]

/**
 * The default configuration of the cluster's clients, whose requests share connections. The library creates a dispatcher
 * for every request, so each would need a TLS handshake, which is most of the processor time of a request here and in
 * the API server.
 */
export class ClusterConfig extends KubeConfig {
  #dispatcher: ReturnType<RequestContext['getDispatcher']>
  #renewAt = 0

  constructor() {
    super()
    this.loadFromDefault()
  }

  /** HTTP/1.1: a connection that is lost without notice delays its request and not all of them. */
  override createDispatcherOptions(...of: DispatcherArguments): DispatcherOptions {
    const options = super.createDispatcherOptions(...of)
    return 'connect' in options ? { ...options, connect: { ...options.connect, ...{ allowH2: false } } } : options
  }

  override async applySecurityAuthentication(context: RequestContext): Promise<void> {
    await super.applySecurityAuthentication(context)
    const now = performance.now()
    if (!this.#dispatcher || now >= this.#renewAt) {
      this.#dispatcher = context.getDispatcher()
      this.#renewAt = now + connectionsMilliseconds
    }
    if (this.#dispatcher) context.setDispatcher(this.#dispatcher)
  }
}
