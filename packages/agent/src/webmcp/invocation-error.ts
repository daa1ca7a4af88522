import { BerthError } from '@berth/contract/errors.ts'

/** An invocation that was begun and whose end nobody has seen. */
export class InvocationError extends BerthError<'outcome_unknown'> {
  /** Absent when not even the beginning was confirmed. */
  readonly invocationId: string | undefined

  constructor(reason: string, invocationId?: string) {
    super('outcome_unknown', { reason: `${reason}.` })
    this.invocationId = invocationId
  }
}
