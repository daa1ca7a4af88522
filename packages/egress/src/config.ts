import { parseArgs } from 'node:util'

export interface EgressConfig {
  /** The unix socket of the control API. */
  readonly controlSocket: string
  /** Number of worker processes. When undefined, one per processor and at least two. */
  readonly workers: number | undefined
  readonly logLevel: string
  readonly logsJson: boolean
  readonly build: string
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']
const logFormats = ['text', 'json']

/** Parses the command line. Throws a readable sentence when it is invalid. */
export function readConfig(commandLine: readonly string[]): EgressConfig {
  const { values } = parseArgs({
    args: [...commandLine],
    options: {
      'control-socket': { type: 'string' },
      workers: { type: 'string' },
      'log-level': { type: 'string', default: 'info' },
      'log-format': { type: 'string', default: 'text' },
      build: { type: 'string', default: 'development' },
    },
  })
  if (!values['control-socket']) throw new Error('--control-socket must name the unix socket of the control API.')
  if (values.workers !== undefined && !/^[1-9][0-9]?$/.test(values.workers))
    throw new Error('--workers must be a number from 1 to 99.')
  return {
    controlSocket: values['control-socket'],
    workers: values.workers === undefined ? undefined : Number(values.workers),
    logLevel: oneOf('--log-level', values['log-level'], logLevels),
    logsJson: oneOf('--log-format', values['log-format'], logFormats) === 'json',
    build: values.build,
  }
}

function oneOf(option: string, value: string, values: readonly string[]): string {
  if (values.includes(value)) return value
  throw new Error(`${option} must be one of ${values.join(', ')}.`)
}
