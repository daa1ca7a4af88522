import type { AgentOptions } from 'node:http'
import type { OtlpDestinationId, SessionId } from '@berth/contract/common/ids.ts'
import type { TelemetryEnvelope } from '@berth/contract/telemetry/telemetry-event.ts'
import { within } from '@berth/runtime/async/deadline.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Logger as OtlpLogger } from '@opentelemetry/api'
import type { LoggerProvider, LogRecordExporter } from '@opentelemetry/sdk-logs'
import type { OutboundGuard } from '../../outbound/outbound-guard.ts'
import type { OtlpDeliveryHealth } from './otlp-delivery-health.ts'
import type { OtlpDestinationService } from './otlp-destination-service.ts'
import type { OtlpDestinationStore, StoredOtlpDestination } from './otlp-destination-store.ts'

/** The queue for one collector. Events beyond it are stored but not exported. */
const maxQueueSize = 4_096
const batchSize = 256
const pauseMilliseconds = 500
/** The time limit of an export with its retries. */
const exportLimitMilliseconds = 30_000
const refreshMilliseconds = 5_000
const closeLimitMilliseconds = 2_000

interface Pipeline {
  readonly version: number
  readonly provider: LoggerProvider
  readonly logger: OtlpLogger
}

interface Destination {
  pipeline: Promise<Pipeline | undefined>
  checkedAt: number
}

interface OtlpExporterOptions {
  readonly store: OtlpDestinationStore
  readonly destinations: OtlpDestinationService
  readonly health: OtlpDeliveryHealth
  readonly guard: OutboundGuard
  readonly version: string
  readonly logger: Logger
}

/**
 * Exports stored events as OTLP logs to the destinations of their sessions. It never delays a session: a slow or
 * unavailable collector can only fill its queue.
 */
export class OtlpExporter {
  readonly #options: OtlpExporterOptions
  readonly #bound = new Map<SessionId, OtlpDestinationId>()
  readonly #destinations = new Map<OtlpDestinationId, Destination>()

  constructor(options: OtlpExporterOptions) {
    this.#options = options
  }

  /** Exports the session's events to this destination until the session ends. */
  bind(sessionId: SessionId, destinationId: OtlpDestinationId): void {
    this.#bound.set(sessionId, destinationId)
  }

  unbind(sessionId: SessionId): void {
    this.#bound.delete(sessionId)
  }

  export(sessionId: SessionId, stored: () => readonly TelemetryEnvelope[]): void {
    const id = this.#bound.get(sessionId)
    if (!id) return
    const events = stored()
    void this.#pipelineOf(id).then((pipeline) => {
      for (const envelope of events) pipeline?.logger.emit(logRecord(sessionId, envelope))
    })
  }

  /** Sends the queued events, within the time limit of a server stop. */
  async close(): Promise<void> {
    const all = [...this.#destinations.values()].map(async ({ pipeline }) => (await pipeline)?.provider.shutdown())
    await within(closeLimitMilliseconds, Promise.allSettled(all)).catch(() => {}) // Their collectors do not respond.
    this.#destinations.clear()
  }

  /** A change of the destination takes effect with the next event, a few seconds later. */
  #pipelineOf(id: OtlpDestinationId): Promise<Pipeline | undefined> {
    const known = this.#destinations.get(id)
    const now = performance.now()
    if (known && now - known.checkedAt < refreshMilliseconds) return known.pipeline
    const destination = { checkedAt: now, pipeline: this.#refreshed(id, known?.pipeline) }
    this.#destinations.set(id, destination)
    return destination.pipeline
  }

  async #refreshed(
    id: OtlpDestinationId,
    before: Promise<Pipeline | undefined> | undefined,
  ): Promise<Pipeline | undefined> {
    const { store, health, logger } = this.#options
    const known = await before
    try {
      const destination = await store.get(id)
      if (destination && destination.version === known?.version) return known
      void known?.provider.shutdown().catch(() => {}) // Events that its old address does not accept are lost.
      return destination && (await this.#open(destination))
    } catch (error) {
      logger.warn({ destinationId: id, reason: (error as Error).message }, 'telemetry cannot be exported; retrying')
      health.failed(id, error as Error)
      return known
    }
  }

  async #open(destination: StoredOtlpDestination): Promise<Pipeline> {
    const { destinations, health, guard, version } = this.#options
    const [{ OTLPExporterBase }, http, transformer, { BatchLogRecordProcessor, LoggerProvider }, resources] =
      await Promise.all([
        import('@opentelemetry/otlp-exporter-base'),
        import('@opentelemetry/otlp-exporter-base/node-http'),
        import('@opentelemetry/otlp-transformer'),
        import('@opentelemetry/sdk-logs'),
        import('@opentelemetry/resources'),
      ])
    const url = `${destination.endpoint.replace(/\/+$/, '')}/v1/logs`
    const refusal = guard.refusalOf(url)
    if (refusal) throw new Error(`the endpoint ${refusal}`)
    const headers = await destinations.headersOf(destination)
    // Not OTLPLogExporter, which adds the headers of OTEL_EXPORTER_OTLP_HEADERS: those are the operator's.
    const delegate = http.createOtlpHttpExportDelegate(
      {
        url,
        headers: async () => ({ ...headers, 'content-type': 'application/x-protobuf' }),
        agentFactory: http.httpAgentFactoryFromOptions({
          keepAlive: true,
          maxSockets: 2,
          lookup: guard.lookupFor(url),
        } as AgentOptions),
        compression: 'gzip',
        concurrencyLimit: 2,
        timeoutMillis: exportLimitMilliseconds,
      },
      transformer.ProtobufLogsSerializer,
      'otlp_http_log_exporter',
      transformer.LogsExporterMetricsHelper,
      undefined,
    )
    const exporter = new OTLPExporterBase(delegate)
    const watched: LogRecordExporter = {
      export: (records, done) =>
        exporter.export(records, (result) => {
          if (result.error) health.failed(destination.id, result.error)
          else health.succeeded(destination.id)
          done(result)
        }),
      forceFlush: () => exporter.forceFlush(),
      shutdown: () => exporter.shutdown(),
    }
    const processor = new BatchLogRecordProcessor({
      exporter: watched,
      maxQueueSize,
      maxExportBatchSize: batchSize,
      scheduledDelayMillis: pauseMilliseconds,
      exportTimeoutMillis: exportLimitMilliseconds,
    })
    const resource = resources.resourceFromAttributes({ 'service.name': 'berth', 'service.version': version })
    const provider = new LoggerProvider({ resource, processors: [processor] })
    return { version: destination.version, provider, logger: provider.getLogger('berth.telemetry') }
  }
}

const severities = { info: 9, warn: 13, error: 17 } as const

function logRecord(sessionId: SessionId, { seq, event }: TelemetryEnvelope) {
  const isError = ['console_error', 'page_crashed', 'service_crashed', 'system_oom_kill'].includes(event.type)
  const isWarning = ['network_loading_failed', 'proxy_error', 'monitor_events_lost'].includes(event.type)
  const level = isError ? 'error' : isWarning ? 'warn' : 'info'
  return {
    eventName: event.type,
    timestamp: [Math.floor(event.ts / 1e6), (event.ts % 1e6) * 1000] as [number, number],
    severityNumber: severities[level] as number,
    severityText: level.toUpperCase(),
    body: (event.data ?? {}) as never,
    attributes: {
      'browser.session.id': sessionId,
      'berth.telemetry.seq': seq,
      'berth.telemetry.type': event.type,
      'berth.telemetry.category': event.category,
      'berth.telemetry.source.kind': event.source.kind,
      ...(event.source.event !== undefined && { 'berth.telemetry.source.event': event.source.event }),
      ...(event.truncated && { 'berth.telemetry.truncated': true }),
    },
  }
}
