import { systemClock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { ProbingEgress } from '../../egress-link/pod-egress.ts'
import { PodEgress } from '../../egress-link/pod-egress.ts'
import { StartError } from '../../start-error.ts'
import type { KubernetesOptions } from '../kubernetes-options.ts'
import { Cluster } from './cluster.ts'
import { IdentityRenewal } from './identity-renewal.ts'
import type { Installation } from './installation.ts'
import { KubernetesDriver } from './kubernetes-driver.ts'

export interface KubernetesContext {
  readonly options: KubernetesOptions | undefined
  readonly installation: Installation
  readonly serverId: string
  readonly diskBytes: number
  readonly logger: Logger
}

/** Opens the driver and the egress of its machines. Each machine has an egress of its own. */
export async function openKubernetesDriver({ options, installation, serverId, diskBytes, logger }: KubernetesContext) {
  if (!options) throw new StartError('BERTH_KUBERNETES_IMAGE must name the image of machines', 64)
  const cluster = await Cluster.open({ options, installation, serverId, diskBytes, clock: systemClock, logger }).catch(
    (error: Error) => {
      throw new StartError(error.message, 69, { cause: error })
    },
  )
  const renewal = new IdentityRenewal({ renew: () => cluster.renewIdentities(), logger })
  const driver = new KubernetesDriver(cluster, renewal, options.pendingSeconds)
  return Object.assign(driver, {
    openEgress: (probing: ProbingEgress) => new PodEgress({ driver, probing, logger }),
  })
}
