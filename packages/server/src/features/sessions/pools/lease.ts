import type { Tags } from '@berth/contract/browsers/tags.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'

/** What a session is for as long as it is leased. */
export interface Lease {
  readonly name: string | null
  readonly tags: Tags
}

/** What a lease changes in the running session. */
export interface LeaseSettings {
  readonly sessionId: SessionId
  readonly leaseNumber: number
  /** Empty: the browser stays where it is. */
  readonly startUrl: string
  readonly hasTelemetry: boolean
}
