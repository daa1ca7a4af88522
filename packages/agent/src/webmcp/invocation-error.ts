import { BerthError } from '@berth/contract/errors.ts'

/** An invocation was started, but its outcome is unknown. */
export class InvocationError extends BerthError<'outcome_unknown'> {
  /** Absent if not even the start was confirmed. */
  readonly invocationId: string | undefined

  constructor(reason: string, invocationId?: string) {
    super('outcome_unknown', { reason: `${reason}.` })
    this.invocationId = invocationId
  }
}
