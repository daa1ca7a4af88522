import { z } from 'zod'
import { Timestamp } from '../../common/time.ts'

const maxPathLength = 4096 // The limit of Linux, in bytes.

/** Normalized: the result contains no `.`, no `..` and no repeated slashes. */
export const AbsolutePath = z
  .string()
  .max(maxPathLength)
  .regex(/^\//, { error: 'must be absolute: begin with /' })
  .transform(withoutDots)
  .meta({ override: { type: 'string', pattern: '^/', maxLength: maxPathLength } })

export const FileMode = z
  .string()
  .regex(/^[0-7]{3,4}$/, { error: 'must be 3 or 4 octal digits, as in 644' })
  .meta({ description: 'Octal: `644`.' })

export const FileInfo = z
  .object({
    name: z.string(),
    path: z.string(),
    size_bytes: z.int(),
    is_dir: z.boolean(),
    mod_time: Timestamp,
    mode: z.string().meta({ description: 'As ls writes it: -rw-r--r--.' }),
  })
  .meta({ id: 'FileInfo' })
export type FileInfo = z.infer<typeof FileInfo>

export const FsEvent = z
  .object({
    type: z.enum(['CREATE', 'WRITE', 'DELETE', 'RENAME']).meta({ description: 'RENAME reports the old name.' }),
    path: z.string(),
    name: z.string().optional(),
    is_dir: z.boolean().optional(),
  })
  .meta({ id: 'FileSystemEvent' })
export type FsEvent = z.infer<typeof FsEvent>

function withoutDots(path: string): string {
  const names: string[] = []
  for (const name of path.split('/')) {
    if (name === '..') names.pop()
    else if (name !== '' && name !== '.') names.push(name)
  }
  return `/${names.join('/')}`
}
