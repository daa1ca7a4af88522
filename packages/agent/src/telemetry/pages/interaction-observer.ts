import type { TelemetryEventType } from '@berth/contract/telemetry/event-types.ts'
import type { CdpEventParams } from '../../browser/cdp-types.ts'
import { interactionScript } from './interaction-script.ts'
import type { ObservablePage, Observer } from './observer.ts'

const worldName = 'telemetry'
const bindingName = 'reportInteraction'
const maxPayloadLength = 8 * 1024

const types: Readonly<Record<string, TelemetryEventType>> = {
  click: 'interaction_click',
  key: 'interaction_key',
  scroll: 'interaction_scroll_settled',
}

/** User interaction with a page, observed by a script in an isolated world, which the page can neither see nor call. */
export class InteractionObserver implements Observer {
  readonly #target: ObservablePage
  #script: Promise<string> | undefined

  constructor(target: ObservablePage) {
    this.#target = target
  }

  get isWanted(): boolean {
    return this.#target.hasDocument && this.#target.collector.captures('interaction')
  }

  readonly handlers = {
    'Runtime.bindingCalled': ({ name, payload }: CdpEventParams<'Runtime.bindingCalled'>) => {
      if (name === bindingName && payload.length <= maxPayloadLength) this.#report(payload)
    },
  }

  start(): Promise<unknown> {
    const binding = this.#target.send('Runtime.addBinding', { name: bindingName, executionContextName: worldName })
    const source = interactionScript(bindingName)
    const added = this.#target.send('Page.addScriptToEvaluateOnNewDocument', {
      source,
      worldName,
      runImmediately: true,
    })
    this.#script = added.then(({ identifier }) => identifier)
    this.#script.catch(() => {}) // The target has closed.
    return Promise.all([binding, added])
  }

  /** The script remains in open documents but no longer reports. */
  stop(): void {
    this.#target.send('Runtime.removeBinding', { name: bindingName }).catch(() => {}) // The target has closed.
    this.#script
      ?.then((identifier) => this.#target.send('Page.removeScriptToEvaluateOnNewDocument', { identifier }))
      .catch(() => {})
  }

  #report(payload: string): void {
    const { kind, ...data } = JSON.parse(payload) as { kind: string } & Record<string, unknown>
    const type = types[kind]
    if (!type) return
    this.#target.emit(type, 'Runtime.bindingCalled', { ...this.#target.context(), ...data })
    if (kind !== 'key') this.#target.noteVisibleChange()
  }
}
