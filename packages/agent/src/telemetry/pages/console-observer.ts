import type { CdpEventParams } from '../../browser/cdp-types.ts'
import { cut } from './cut.ts'
import type { ObservablePage, Observer } from './observer.ts'

const maxArguments = 32
const maxArgumentLength = 4 * 1024
const maxCallFrames = 32
const maxUrlLength = 2 * 1024

type RemoteObject = CdpEventParams<'Runtime.consoleAPICalled'>['args'][number]
type StackTrace = NonNullable<CdpEventParams<'Runtime.consoleAPICalled'>['stackTrace']>

/** Console messages and uncaught exceptions. */
export class ConsoleObserver implements Observer {
  readonly #target: ObservablePage
  #startedAt = 0

  constructor(target: ObservablePage) {
    this.#target = target
  }

  get isWanted(): boolean {
    return this.#target.collector.captures('console')
  }

  readonly handlers = {
    'Runtime.consoleAPICalled': (params: CdpEventParams<'Runtime.consoleAPICalled'>) => this.#takeMessage(params),
    'Runtime.exceptionThrown': (params: CdpEventParams<'Runtime.exceptionThrown'>) => this.#takeException(params),
  }

  start(): Promise<unknown> {
    // Chromium also reports earlier messages.
    this.#startedAt = this.#target.collector.now.getTime()
    return this.#target.send('Runtime.enable')
  }

  stop(): void {
    this.#target.send('Runtime.disable').catch(() => {}) // The target has closed.
  }

  #takeMessage({ type, args, stackTrace, timestamp }: CdpEventParams<'Runtime.consoleAPICalled'>): void {
    if (timestamp < this.#startedAt) return
    const texts = args.slice(0, maxArguments).map((argument) => cut(textOf(argument), maxArgumentLength))
    const truncated = texts.some(({ isCut }) => isCut) || args.length > maxArguments
    const frame = stackTrace?.callFrames[0]
    const data = {
      ...this.#target.context(),
      level: type,
      text: texts[0]?.text ?? '',
      args: texts.map(({ text }) => text),
      ...(type === 'error' && frame && { line: frame.lineNumber, column: frame.columnNumber, source_url: frame.url }),
      ...(stackTrace && { stack_trace: shortened(stackTrace) }),
    }
    this.#target.emit(type === 'error' ? 'console_error' : 'console_log', 'Runtime.consoleAPICalled', data, truncated)
    if (type === 'error') this.#target.noteVisibleChange()
  }

  #takeException({ exceptionDetails, timestamp }: CdpEventParams<'Runtime.exceptionThrown'>): void {
    if (timestamp < this.#startedAt) return
    const { text, exception, lineNumber, columnNumber, url, stackTrace } = exceptionDetails
    const { text: message, isCut } = cut(exception?.description ?? text, maxArgumentLength)
    const data = {
      ...this.#target.context(),
      text: message,
      line: lineNumber,
      column: columnNumber,
      ...(url && { source_url: url }),
      ...(stackTrace && { stack_trace: shortened(stackTrace) }),
    }
    this.#target.emit('console_error', 'Runtime.exceptionThrown', data, isCut)
  }
}

function textOf({ type, value, unserializableValue, description, preview }: RemoteObject): string {
  if (typeof value === 'string') return value
  if (unserializableValue !== undefined) return unserializableValue
  if (value !== undefined) return JSON.stringify(value)
  if (preview && type === 'object') {
    const properties = preview.properties.map(({ name, value: text }) => `${name}: ${text}`)
    return `${description ?? ''} {${properties.join(', ')}${preview.overflow ? ', …' : ''}}`.trim()
  }
  return description ?? type
}

function shortened({ callFrames, description, parent }: StackTrace): Record<string, unknown> {
  return {
    callFrames: callFrames.slice(0, maxCallFrames).map(({ functionName, scriptId, url, lineNumber, columnNumber }) => ({
      functionName,
      scriptId,
      url: url.slice(0, maxUrlLength),
      lineNumber,
      columnNumber,
    })),
    ...(description && { description }),
    ...(parent && { parent: shortened({ ...parent, parent: undefined } as unknown as StackTrace) }),
  }
}
