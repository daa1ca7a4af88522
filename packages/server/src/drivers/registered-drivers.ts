import type { Logger } from '@berth/runtime/process/logger.ts'
import type { HostFolders } from '../host/host-folders.ts'
import type { ServiceUser } from '../host/service-user.ts'
import type { Trash } from '../host/trash.ts'
import type { Driver } from './driver.ts'
import type { DriverName } from './driver-names.ts'
import type { DriverOptions } from './driver-options.ts'
import { LocalDriver } from './local/local-driver.ts'

export interface DriverContext {
  readonly folders: HostFolders
  readonly trash: Trash
  /** Where egress runs under a user of its own. */
  readonly egressUser: ServiceUser | undefined
  readonly options: DriverOptions
  readonly logger: Logger
}

export interface OpenDriver extends Driver {
  /** Lets go of all machines and leaves them running. */
  close(): void
}

/** Opens a driver of each kind. */
export const registeredDrivers: Readonly<Record<DriverName, (context: DriverContext) => Promise<OpenDriver>>> = {
  local: ({ options, ...context }) => LocalDriver.open({ ...context, ...options }),
}
