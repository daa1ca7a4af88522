import type { Logger } from '@berth/runtime/process/logger.ts'
import type { PodEgress, ProbingEgress } from '../egress-link/pod-egress.ts'
import type { HostFolders } from '../host/host-folders.ts'
import type { ServiceUser } from '../host/service-user.ts'
import type { Trash } from '../host/trash.ts'
import type { Driver } from './driver.ts'
import type { DriverName } from './driver-names.ts'
import type { DriverOptions } from './driver-options.ts'
import type { Installation } from './kubernetes/installation.ts'
import { LocalDriver } from './local/local-driver.ts'

export interface DriverContext {
  readonly folders: HostFolders
  readonly trash: Trash
  /** Where egress runs under a user of its own. */
  readonly egressUser: ServiceUser | undefined
  readonly options: DriverOptions
  /** For drivers whose machines all servers of the database share. */
  readonly installation: () => Promise<Installation>
  readonly serverId: string
  readonly logger: Logger
}

export interface OpenDriver extends Driver {
  /** Lets go of all machines and leaves them running. */
  close(): void
  /** Where its machines do not use the egress of this host. */
  openEgress?(probing: ProbingEgress): PodEgress
}

/** Opens a driver of each kind. */
export const registeredDrivers: Readonly<Record<DriverName, (context: DriverContext) => Promise<OpenDriver>>> = {
  local: ({ options, ...context }) => LocalDriver.open({ ...context, ...options }),
  // Loaded when it is chosen: the client of the cluster is large.
  kubernetes: async ({ options: { kubernetes, diskBytes }, installation, serverId, logger }) => {
    const { openKubernetesDriver } = await import('./kubernetes/open-kubernetes-driver.ts')
    return openKubernetesDriver({
      options: kubernetes,
      installation: await installation(),
      serverId,
      diskBytes,
      logger,
    })
  },
}
