import type { CdpAnswer, CdpEvent, CdpEventParams, CdpMethod, CdpParams } from '../../browser/cdp-types.ts'
import type { TelemetryReport, TelemetrySink } from '../telemetry-sink.ts'

type Handlers = { readonly [Event in CdpEvent]?: (params: CdpEventParams<Event>) => void }

/** Observes one kind of event of a target, from `start` to `stop`. */
export interface Observer {
  readonly isWanted: boolean
  readonly handlers: Handlers
  /** Sends its commands without waiting between them: a new target is paused until all are sent. */
  start(): Promise<unknown>
  stop(): void
}

/** What an observer needs of its target. */
export interface ObservablePage {
  readonly collector: TelemetrySink
  readonly type: string
  readonly hasDocument: boolean
  send<Method extends CdpMethod>(
    method: Method,
    params?: CdpParams<Method>,
    limitMilliseconds?: number,
  ): Promise<CdpAnswer<Method>>
  /** Fields of every event of the target. */
  context(url?: string): Record<string, unknown>
  emit(type: TelemetryReport['type'], nativeName: string, data: object, truncated?: boolean): void
  /** Notes a change that a person would see. */
  noteVisibleChange(): void
}
