import type { CdpAnswer, CdpEvent, CdpEventParams, CdpMethod, CdpParams } from '../../browser/cdp-types.ts'
import type { TelemetryReport, TelemetrySink } from '../telemetry-sink.ts'

type Handlers = { readonly [Event in CdpEvent]?: (params: CdpEventParams<Event>) => void }

/** Observes one kind of event of a target, from `start` to `stop`. */
export interface Observer {
  readonly isWanted: boolean
  readonly handlers: Handlers
  /** Sends its commands without waiting between them: a new target waits for all of them. */
  start(): Promise<unknown>
  stop(): void
}

/** What an observer sees of its target. */
export interface ObservablePage {
  readonly collector: TelemetrySink
  readonly type: string
  readonly hasDocument: boolean
  send<Method extends CdpMethod>(
    method: Method,
    params?: CdpParams<Method>,
    limitMilliseconds?: number,
  ): Promise<CdpAnswer<Method>>
  /** What every event of the target tells. */
  context(url?: string): Record<string, unknown>
  emit(type: TelemetryReport['type'], nativeName: string, data: object, truncated?: boolean): void
  /** Something has changed that a person would see. */
  noteVisibleChange(): void
}
