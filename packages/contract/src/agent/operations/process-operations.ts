import { z } from 'zod'
import { Timestamp } from '../../common/time.ts'
import { defineStream } from '../../stream.ts'
import { defineOperation } from '../operation.ts'

const tag = 'Browser Processes'

const AbsoluteFolder = z.string().regex(/^\//, { error: 'must be absolute: begin with /' })

/** Checks only the alphabet: a pattern with groups would need stack in proportion to the length of the text. */
const Base64 = z
  .string()
  .refine((text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text), { error: 'must be base64' })
  .meta({ format: 'byte' })

const Dimension = z.int().min(1).max(65_535)

const commandFields = {
  command: z.string().min(1).meta({ description: 'A program by name or path. It does not run in a shell.' }),
  args: z.array(z.string()).default([]),
  cwd: AbsoluteFolder.nullish().meta({ description: 'Absent: the home folder of the session’s user.' }),
  env: z
    .record(z.string().regex(/^[^=]+$/, { error: 'must be names without "="' }), z.string())
    .default({})
    .meta({ description: 'Added to the default environment of programs in a session.' }),
  as_user: z
    .string()
    .min(1)
    .nullish()
    .meta({ description: 'Name, uid, or uid:gid. A session has only the user `kernel`.' }),
  as_root: z.boolean().default(false).meta({ description: 'Refused: there is no root in a session.' }),
  timeout_sec: z.int().min(0).nullish().meta({
    description: 'Seconds after which the program and everything it has started is killed. 0 or absent: never.',
  }),
}

export const ProcessCommand = z.strictObject(commandFields).meta({ id: 'ProcessExecRequest' })
export type ProcessCommand = z.output<typeof ProcessCommand>

export const ProcessSpawn = z
  .strictObject({
    ...commandFields,
    allocate_tty: z.boolean().default(false).meta({ description: 'Run it in a terminal, whose output is stdout.' }),
    rows: Dimension.optional().meta({ description: 'Rows of the terminal. Default: 24.' }),
    cols: Dimension.optional().meta({ description: 'Columns of the terminal. Default: 80.' }),
  })
  .meta({ id: 'ProcessSpawnRequest' })
export type ProcessSpawn = z.output<typeof ProcessSpawn>

const ExitCode = z.int().meta({ description: '-1 when a signal ended the program.' })

export const ProcessResult = z
  .object({
    exit_code: ExitCode,
    stdout_b64: z.string(),
    stderr_b64: z.string(),
    duration_ms: z.int(),
    stdout_truncated: z
      .literal(true)
      .optional()
      .meta({ description: 'The output is longer; these are the first 16 MiB.' }),
    stderr_truncated: z.literal(true).optional(),
  })
  .meta({ id: 'ProcessExecResult' })

export const ProcessStatus = z
  .object({
    state: z.enum(['running', 'exited']),
    exit_code: ExitCode.nullable(),
    cpu_pct: z.number().meta({
      description: 'Average processor use since its start, in percent of one core. Excludes child processes.',
    }),
    mem_bytes: z.int().meta({ description: 'Resident memory of the program alone.' }),
  })
  .meta({ id: 'ProcessStatus' })
export type ProcessStatus = z.output<typeof ProcessStatus>

export const ProcessOutput = z
  .union([
    z.object({ stream: z.enum(['stdout', 'stderr']), data_b64: z.string() }),
    z.object({ event: z.enum(['exit']), exit_code: ExitCode }),
  ])
  .meta({ id: 'ProcessStreamEvent' })
export type ProcessOutput = z.output<typeof ProcessOutput>

const Done = z.object({ ok: z.literal(true) }).meta({ id: 'OkResponse' })

const oneProcess = { tag, category: 'platform', params: z.object({ process_id: z.uuid() }), status: 200 } as const

export const executeCommand = defineOperation({
  operationId: 'executeCommand',
  method: 'POST',
  path: '/process/exec',
  summary: 'Run a program and wait until it exits',
  description:
    'Responds when the program exits, even if its child processes still run. If the caller disconnects first, the program and everything it has started is killed.',
  tag,
  category: 'platform',
  body: ProcessCommand,
  reply: ProcessResult,
  status: 200,
  errors: ['field_not_supported', 'process_start_failed', 'process_timed_out'],
})

export const spawnProcess = defineOperation({
  operationId: 'spawnProcess',
  method: 'POST',
  path: '/process/spawn',
  summary: 'Start a program and leave it running',
  tag,
  category: 'platform',
  body: ProcessSpawn,
  reply: z.object({ process_id: z.uuid(), pid: z.int(), started_at: Timestamp }).meta({ id: 'ProcessSpawnResult' }),
  status: 200,
  errors: ['field_not_supported', 'process_start_failed', 'too_many_processes'],
})

export const getProcessStatus = defineOperation({
  ...oneProcess,
  operationId: 'getProcessStatus',
  method: 'GET',
  path: '/process/{process_id}/status',
  summary: 'Get the status of a program',
  reply: ProcessStatus,
  errors: ['process_not_found'],
})

export const streamProcessOutput = defineOperation(
  defineStream({
    ...oneProcess,
    operationId: 'streamProcessOutput',
    path: '/process/{process_id}/stdout/stream',
    summary: 'Follow the output of a program',
    description:
      'Up to 1 MiB of output is buffered until it is read; then the program blocks. Several readers share the output. The last event contains the exit code.',
    event: ProcessOutput,
    errors: ['process_not_found'],
  }),
)

export const writeProcessInput = defineOperation({
  ...oneProcess,
  operationId: 'writeProcessInput',
  method: 'POST',
  path: '/process/{process_id}/stdin',
  summary: 'Write to a program’s input',
  description: 'Responds when the program’s pipe or terminal has accepted all bytes.',
  body: z.strictObject({ data_b64: Base64 }).meta({ id: 'ProcessStdinRequest' }),
  reply: z.object({ written_bytes: z.int() }).meta({ id: 'ProcessStdinResult' }),
  errors: ['process_not_found', 'process_not_running', 'process_input_closed', 'process_input_full'],
})

export const killProcess = defineOperation({
  ...oneProcess,
  operationId: 'killProcess',
  method: 'POST',
  path: '/process/{process_id}/kill',
  summary: 'Send a signal to a program',
  description: 'Sent to its process group. KILL ends everything that it has started.',
  body: z
    .strictObject({ signal: z.enum(['TERM', 'KILL', 'INT', 'HUP']).default('TERM') })
    .meta({ id: 'ProcessKillRequest' }),
  reply: Done,
  errors: ['process_not_found', 'process_not_running'],
})

export const resizeTerminal = defineOperation({
  ...oneProcess,
  operationId: 'resizeTerminal',
  method: 'POST',
  path: '/process/{process_id}/resize',
  summary: 'Change the size of a program’s terminal',
  body: z.strictObject({ rows: Dimension, cols: Dimension }).meta({ id: 'ProcessResizeRequest' }),
  reply: Done,
  errors: ['process_not_found', 'process_not_running', 'process_has_no_terminal'],
})

export const processOperations = [
  executeCommand,
  spawnProcess,
  getProcessStatus,
  streamProcessOutput,
  writeProcessInput,
  killProcess,
  resizeTerminal,
] as const
