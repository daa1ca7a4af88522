import { type CdpCommandMethod, type FieldReader, readers } from './command-fields.ts'

const maxIdentifierLength = 128

interface Command {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
  readonly sessionId?: unknown
}

/** Whether commands of this method are reported. */
export function isReported(method: unknown): method is CdpCommandMethod {
  return typeof method === 'string' && Object.hasOwn(readers, method)
}

/**
 * The reported fields of a command: numbers, flags, counts and enum values. Of typed text, keys, addresses, paths and
 * scripts only the length is reported.
 */
export function commandData(command: Command, connectionId: string): Record<string, unknown> {
  const params = typeof command.params === 'object' && command.params !== null ? command.params : {}
  const fields = isReported(command.method) ? readers[command.method] : {}
  const read = Object.entries(fields).flatMap(([name, reader]: [string, FieldReader]) => {
    const value = reader(params as Record<string, unknown>)
    return value === undefined ? [] : [[name, value]]
  })
  return {
    method: command.method,
    ...(typeof command.id === 'number' && { command_id: command.id }),
    connection_id: connectionId,
    ...(typeof command.sessionId === 'string' && { session_id: command.sessionId.slice(0, maxIdentifierLength) }),
    ...Object.fromEntries(read),
  }
}
