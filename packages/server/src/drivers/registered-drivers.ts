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
  /** Set when egress runs as a separate user. */
  readonly egressUser: ServiceUser | undefined
  readonly options: DriverOptions
  /** For drivers whose machines are shared by all servers of the database. */
  readonly installation: () => Promise<Installation>
  readonly serverId: string
  readonly logger: Logger
}

export interface OpenDriver extends Driver {
  /** Detaches from all machines. They keep running. */
  close(): void
  /** Set when its machines do not use the egress of this host. */
  openEgress?(probing: ProbingEgress): PodEgress
}

/** Opens a driver by name. */
export const registeredDrivers: Readonly<Record<DriverName, (context: DriverContext) => Promise<OpenDriver>>> = {
  local: ({ options, ...context }) => LocalDriver.open({ ...context, ...options }),
  // Imported on demand, because the cluster client is large.
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
