import {
  executeCommand as executeOperation,
  getProcessStatus,
  killProcess,
  resizeTerminal,
  spawnProcess,
  streamProcessOutput,
  writeProcessInput,
} from '@berth/contract/agent/operations/process-operations.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { EventStream, type OperationContext, type ServedOperation, serve } from '../operations/served-operation.ts'
import { commandOf } from './command.ts'
import { executeCommand } from './execute-command.ts'
import { ProcessTable } from './process-table.ts'
import { SpawnedProcess } from './spawned-process.ts'

export function servedProcesses(context: OperationContext): readonly ServedOperation[] {
  const { run_folder: runFolder } = context.config
  const processes = new ProcessTable()
  return [
    serve(executeOperation, async ({ body, signal }) =>
      executeCommand({
        command: await commandOf(body, context),
        runFolder,
        timeoutSeconds: body.timeout_sec ?? 0,
        signal,
      }),
    ),
    serve(spawnProcess, async ({ body }) => {
      const command = await commandOf(body, context)
      const process = await processes.add(() =>
        SpawnedProcess.start({ command, request: body, runFolder, clock: systemClock }),
      )
      // A running program counts as activity of the session.
      void process.ended.then(context.activity.begin())
      return { process_id: process.id, pid: process.pid, started_at: process.startedAt.toISOString() }
    }),
    serve(getProcessStatus, ({ params }) => processes.get(params.process_id).status()),
    serve(
      streamProcessOutput,
      ({ params, signal }) => new EventStream(processes.get(params.process_id).output(signal)),
    ),
    serve(writeProcessInput, async ({ params, body }) => {
      const bytes = Buffer.from(body.data_b64, 'base64')
      await processes.get(params.process_id).write(bytes)
      return { written_bytes: bytes.length }
    }),
    serve(killProcess, async ({ params, body }) => {
      await processes.get(params.process_id).signal(body.signal)
      return { ok: true as const }
    }),
    serve(resizeTerminal, ({ params, body }) => {
      processes.get(params.process_id).resize(body.rows, body.cols)
      return { ok: true as const }
    }),
  ]
}
