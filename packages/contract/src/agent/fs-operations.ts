import { z } from 'zod'
import { Timestamp } from '../common/time.ts'
import { defineOperation } from './operation.ts'

const tag = 'Browser Filesystem'

const AbsolutePath = z.string().regex(/^\//, { error: 'must be absolute: begin with /' })

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

export const getFileInfo = defineOperation({
  operationId: 'getFileInfo',
  method: 'GET',
  path: '/fs/file_info',
  summary: 'Describe a file or directory',
  tag,
  category: 'platform',
  query: z.object({ path: AbsolutePath }),
  reply: FileInfo,
  status: 200,
  errors: ['file_not_found'],
})

export const fsOperations = [getFileInfo] as const
