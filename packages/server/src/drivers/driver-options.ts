import type { KubernetesOptions } from './kubernetes-options.ts'

/** What an operator sets for the machines of a host, whatever kind they are. */
export interface DriverOptions {
  /** The memory of the host and disk space of the data folder that new sessions must leave free. */
  readonly reserve: { readonly memoryBytes: number; readonly diskBytes: number }
  /** The disk space of a session. */
  readonly diskBytes: number
  /** Whether sessions get disk image files where the host supports them. */
  readonly hasDiskImages: boolean
  /** For the driver of this name only. */
  readonly kubernetes: KubernetesOptions | undefined
}
