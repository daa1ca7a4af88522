/** Logs of all berths of this process, also of those that have ended, because machines outlive them. */
const logs: (readonly string[])[] = []

export function rememberLog(log: readonly string[]): void {
  logs.push(log)
}

/**
 * The host's id for the machine of a session, which differs from the session's. Only the server's log contains both.
 */
export function machineOf(id: string): string {
  if (id.startsWith('mch')) return id
  for (const line of logs.flat()) {
    const [, machineId] = line.includes(`"sessionId":"${id}"`) ? (/"machineId":"(mch\w+)"/.exec(line) ?? []) : []
    if (machineId !== undefined) return machineId
  }
  throw new Error(`no berth has told which machine ${id} has`)
}
