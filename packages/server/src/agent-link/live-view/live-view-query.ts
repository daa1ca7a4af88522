import { BerthError } from '@berth/contract/errors.ts'
import { queryOf } from '@berth/runtime/http/query-string.ts'

const parameter = 'readOnly'

/**
 * Whether the address requests a view without input. Prefers read-only if in doubt: one of several values suffices, in
 * any spelling of the name.
 */
export function isReadOnlyView(url: string): boolean {
  const values = [...new URLSearchParams(queryOf(url))]
    .filter(([name]) => name.toLowerCase() === parameter.toLowerCase())
    .map(([, value]) => value)
  if (!values.every((value) => value === 'true' || value === 'false')) {
    throw new BerthError('invalid_input', { reason: `${parameter}: must be true or false.` })
  }
  return values.includes('true')
}
