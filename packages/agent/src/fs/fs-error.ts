import { BerthError } from '@berth/contract/errors.ts'

/** A path of a request and the field that named it. */
export interface Place {
  readonly field: string
  readonly path: string
}

/** Translates a system error for a path into the caller's mistake; returns all other errors unchanged. */
export function toFsError(thrown: unknown, { field, path }: Place): unknown {
  if (!(thrown instanceof Error) || thrown instanceof BerthError) return thrown
  const options = { cause: thrown }
  switch ((thrown as NodeJS.ErrnoException).code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new BerthError('file_not_found', { field, path }, options)
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new BerthError('forbidden', { reason: `${field}: the user of the session may not do this.` }, options)
    case 'EBUSY':
      return new BerthError('forbidden', { reason: `${field}: is in use by the system.` }, options)
    case 'ENOSPC':
    case 'EDQUOT':
      return new BerthError('disk_full', { field }, options)
    default: {
      const rule = rules[(thrown as NodeJS.ErrnoException).code ?? '']
      return rule === undefined ? thrown : refusal(field, rule, options)
    }
  }
}

const rules: Readonly<Record<string, string>> = {
  EISDIR: 'must not be a directory',
  ENOTEMPTY: 'must not be a non-empty directory',
  EEXIST: 'there is something of that name already',
  ENAMETOOLONG: 'has a name that is too long',
  ELOOP: 'must not go through so many symbolic links',
  EINVAL: 'does not support this operation',
  ENXIO: 'must be a regular file',
  ENODEV: 'must be a regular file',
  ETXTBSY: 'is a running program',
  EFBIG: 'is larger than the maximum file size',
}

export function refusal(field: string, rule: string, options: ErrorOptions = {}): BerthError {
  return new BerthError('invalid_input', { reason: `${field}: ${rule}.` }, options)
}

/** Runs an operation on a path and reports its errors for the field that named it. */
export async function at<Value>(place: Place, act: () => Promise<Value>): Promise<Value> {
  try {
    return await act()
  } catch (thrown) {
    throw toFsError(thrown, place)
  }
}
