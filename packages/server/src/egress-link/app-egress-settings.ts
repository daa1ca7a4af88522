import type { MachineId } from '@berth/contract/common/ids.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'

/** The route of an app's machine. It has no session: it reaches berth like any other client, with its own API key. */
export function appEgressSettings(id: MachineId): EgressSettings {
  return { session_id: id, private_hosts: [], routes: [] }
}
