import { type Logger, pino } from 'pino'

export type { Logger }

export interface LoggerOptions {
  readonly name: string
  readonly level: string
  /** True for one JSON object per line, false for readable lines. */
  readonly json: boolean
}

/** Logs to standard error. Standard output is reserved for results. Headers and bodies are never logged. */
export function createLogger({ name, level, json }: LoggerOptions): Logger {
  const options = { name, level, base: { pid: process.pid }, redact: ['req.headers', 'headers', 'jwt', 'key'] }
  return json ? pino(options, pino.destination({ dest: 2, sync: true })) : pino(options, readableLines())
}

/** `12:04:11 warn  egress has ended, starting it again (exitCode 9)` */
function readableLines() {
  return {
    write(line: string): void {
      const { time, level, msg, name: _name, pid: _pid, err, ...facts } = JSON.parse(line)
      const clock = new Date(time).toISOString().slice(11, 19)
      const label = pino.levels.labels[level] ?? String(level)
      const details = Object.entries(facts).map(
        ([key, value]) => `${key} ${typeof value === 'string' ? value : JSON.stringify(value)}`,
      )
      const tail = details.length > 0 ? ` (${details.join(', ')})` : ''
      const cause = err ? `\n${err.stack ?? err.message}` : ''
      process.stderr.write(`${clock} ${label.padEnd(5)} ${msg ?? ''}${tail}${cause}\n`)
    },
  }
}
