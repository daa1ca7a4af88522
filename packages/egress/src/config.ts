import { parseArgs } from 'node:util'

export interface EgressConfig {
  /** The unix socket on which the server steers egress. */
  readonly controlSocket: string
  readonly logLevel: string
  readonly logsJson: boolean
  readonly build: string
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']
const logFormats = ['text', 'json']

/** Reads the command line. What is wrong with it is thrown as a sentence. */
export function readConfig(commandLine: readonly string[]): EgressConfig {
  const { values } = parseArgs({
    args: [...commandLine],
    options: {
      'control-socket': { type: 'string' },
      'log-level': { type: 'string', default: 'info' },
      'log-format': { type: 'string', default: 'text' },
      build: { type: 'string', default: 'development' },
    },
  })
  if (!values['control-socket']) throw new Error('--control-socket must name the unix socket to be steered by.')
  return {
    controlSocket: values['control-socket'],
    logLevel: oneOf('--log-level', values['log-level'], logLevels),
    logsJson: oneOf('--log-format', values['log-format'], logFormats) === 'json',
    build: values.build,
  }
}

function oneOf(option: string, value: string, values: readonly string[]): string {
  if (values.includes(value)) return value
  throw new Error(`${option} must be one of ${values.join(', ')}.`)
}
