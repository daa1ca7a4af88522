import { BerthError, type ErrorCode } from '@berth/contract/errors.ts'
import { violates } from './database.ts'

type NameTaken = ErrorCode & `${string}_name_taken`

/** Handles the rejection of a write: the unique index of names decides between concurrent ones. */
export function refuseTakenName(
  index: string,
  code: NameTaken,
  name: string | null | undefined,
): (error: unknown) => never {
  return (error) => {
    if (!violates(error, index)) throw error
    throw new BerthError(code, { name: name ?? '' }, { cause: error })
  }
}
