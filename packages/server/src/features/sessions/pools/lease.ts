import type { Tags } from '@berth/contract/browsers/tags.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'

/** The properties of a session while it is leased. */
export interface Lease {
  readonly name: string | null
  readonly tags: Tags
}

/** What a lease changes in the running session. */
export interface LeaseSettings {
  readonly sessionId: SessionId
  readonly leaseNumber: number
  /** Empty for no navigation. */
  readonly startUrl: string
  readonly hasTelemetry: boolean
}
