import { AppsV1Api, CoreV1Api, type KubeConfig } from '@kubernetes/client-node'

export interface Apis {
  readonly core: CoreV1Api
  readonly apps: AppsV1Api
}

export function openApis(config: KubeConfig): Apis {
  return { core: config.makeApiClient(CoreV1Api), apps: config.makeApiClient(AppsV1Api) }
}
