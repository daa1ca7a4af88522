import { BerthError, type ErrorCode } from '@berth/contract/errors.ts'
import { violates } from './database.ts'

type NameTaken = ErrorCode & `${string}_name_taken`

/** Converts the violation of a unique index of names into an error. The index decides between concurrent writes. */
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
