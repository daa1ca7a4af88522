/** What an operator sets for the machines of a host, whatever kind they are. */
export interface DriverOptions {
  /** What new sessions leave of the host's memory and of the data folder's disk. */
  readonly reserve: { readonly memoryBytes: number; readonly diskBytes: number }
  /** What a session may write to its disk. */
  readonly diskBytes: number
  /** Whether sessions have disks in files, where the host can. */
  readonly hasDiskImages: boolean
}
