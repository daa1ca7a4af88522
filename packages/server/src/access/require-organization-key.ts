import { BerthError } from '@berth/contract/errors.ts'
import type { OrganizationCaller } from './caller.ts'

/** Used by operations that concern more than one project. */
export function requireOrganizationKey({ keyProjectId }: OrganizationCaller): void {
  if (keyProjectId === null) return
  throw new BerthError('forbidden', { reason: 'This needs an API key of the whole organization.' })
}
