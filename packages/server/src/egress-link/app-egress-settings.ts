import type { MachineId } from '@berth/contract/common/ids.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'

/** How the machine of an app leaves. Named by itself, it reaches berth as any other client does, with the key that it is given. */
export function appEgressSettings(id: MachineId): EgressSettings {
  return { session_id: id, private_hosts: [], routes: [] }
}
