import type { KubernetesOptions } from './kubernetes-options.ts'

/** The operator's settings for machines of any driver. */
export interface DriverOptions {
  /** The memory of the host and disk space of the data folder that new sessions must leave free. */
  readonly reserve: { readonly memoryBytes: number; readonly diskBytes: number }
  /** The disk space of a session. */
  readonly diskBytes: number
  /** Whether sessions get disk image files where the host supports them. */
  readonly hasDiskImages: boolean
  /** Only for the driver of this name. */
  readonly kubernetes: KubernetesOptions | undefined
}
