/** Above all ids that a client uses. */
const firstOwnId = 1_000_000_000
const ownAnswer = '{"id":1000'
/** A tab that takes longer to answer is hidden until it does. */
const tabLimitMilliseconds = 500
/** A responsive client resumes a new target within milliseconds. */
const pauseLimitMilliseconds = 1_000

interface CdpMessage {
  readonly id?: number
  readonly method?: string
  readonly params?: {
    readonly sessionId?: string
    readonly waitingForDebugger?: boolean
    readonly targetInfo?: TargetInfo
  }
  readonly sessionId?: string
}

interface TargetInfo {
  readonly type: string
  readonly targetId: string
}

interface TabGateOptions {
  /** The tab of the call, if it is known yet. */
  readonly targetId: string | undefined
  /** Limit for that tab, longer than for others: it may be busy for a while. */
  readonly tabLimitMilliseconds: number
  readonly toChromium: (text: string) => void
  readonly toClient: (text: string) => void
}

/**
 * Filters messages between Playwright and Chromium. When Playwright connects, it waits for every tab, and it pauses
 * every new tab of the browser, whoever opens it. So a tab that does not answer (an endless loop, an open dialog) is
 * hidden from it until it does, and new tabs do not wait for an executor whose code blocks.
 */
export class TabGate {
  readonly #options: TabGateOptions
  #lastOwnId = firstOwnId
  /** Tabs that were asked to respond, by command id, with the event that the client will then get. */
  readonly #asked = new Map<number, { readonly sessionId: string; readonly attached: string; isAwaited: boolean }>()
  /** The response to the client's first attach to all tabs, while it is held back. */
  #firstAttach: { readonly id: number; answer?: string } | undefined
  readonly #paused = new Map<string, NodeJS.Timeout>()

  constructor(options: TabGateOptions) {
    this.#options = options
  }

  fromClient(text: string): void {
    if (text.includes('"Target.setAutoAttach"') && !this.#firstAttach) {
      const { id, sessionId } = JSON.parse(text) as CdpMessage
      if (id !== undefined && sessionId === undefined) this.#firstAttach = { id }
    } else if (text.includes('"Runtime.runIfWaitingForDebugger"')) {
      this.#unpause((JSON.parse(text) as CdpMessage).sessionId)
    }
    this.#options.toChromium(text)
  }

  /** Examines the beginning of a message, which is Chromium's own; data of pages follows later in it. */
  fromChromium(text: string): void {
    if (text.startsWith(ownAnswer)) this.#handleProbeAnswer((JSON.parse(text) as CdpMessage).id as number)
    else if (text.startsWith('{"method":"Target.attachedToTarget"')) this.#takeAttached(text)
    else if (text.startsWith('{"method":"Target.detachedFromTarget"')) this.#takeDetached(text)
    else if (this.#firstAttach && text.startsWith(`{"id":${this.#firstAttach.id},`)) {
      this.#firstAttach.answer = text
      this.#answerFirstAttach()
    } else this.#options.toClient(text)
  }

  close(): void {
    for (const timer of this.#paused.values()) clearTimeout(timer)
    this.#paused.clear()
  }

  #takeAttached(text: string): void {
    const { params = {}, sessionId: parent } = JSON.parse(text) as CdpMessage
    const { sessionId = '', waitingForDebugger, targetInfo } = params
    const isTab = parent === undefined && targetInfo?.type === 'page'
    // Playwright does this by default: a background tab then handles clicks and keys like the front one.
    if (isTab) this.#ask('Emulation.setFocusEmulationEnabled', { enabled: true }, sessionId)
    if (waitingForDebugger) this.#pause(sessionId)
    if (isTab && !waitingForDebugger) this.#probe(sessionId, targetInfo, text)
    else this.#options.toClient(text)
  }

  #probe(sessionId: string, { targetId }: TargetInfo, attached: string): void {
    const asked = { sessionId, attached, isAwaited: true }
    this.#asked.set(this.#ask('Runtime.evaluate', { expression: '0' }, sessionId), asked)
    const giveUp = () => {
      asked.isAwaited = false
      this.#answerFirstAttach()
    }
    const { tabLimitMilliseconds: own } = this.#options
    const isOwn = targetId === this.#options.targetId
    setTimeout(giveUp, isOwn ? own : Math.min(own, tabLimitMilliseconds)).unref()
  }

  #handleProbeAnswer(id: number): void {
    const asked = this.#asked.get(id)
    if (!asked) return
    this.#asked.delete(id)
    this.#options.toClient(asked.attached)
    this.#answerFirstAttach()
  }

  #takeDetached(text: string): void {
    const gone = (JSON.parse(text) as CdpMessage).params?.sessionId
    this.#unpause(gone)
    const unseen = [...this.#asked].find(([, { sessionId }]) => sessionId === gone)
    if (unseen) {
      this.#asked.delete(unseen[0])
      this.#answerFirstAttach()
    } else this.#options.toClient(text)
  }

  #answerFirstAttach(): void {
    const answer = this.#firstAttach?.answer
    if (answer === undefined || [...this.#asked.values()].some(({ isAwaited }) => isAwaited)) return
    this.#firstAttach = { id: -1 } // There is only one first attach.
    this.#options.toClient(answer)
  }

  #pause(sessionId: string): void {
    const goOn = () => {
      this.#paused.delete(sessionId)
      this.#ask('Runtime.runIfWaitingForDebugger', {}, sessionId)
    }
    this.#paused.set(sessionId, setTimeout(goOn, pauseLimitMilliseconds))
  }

  #unpause(sessionId: string | undefined): void {
    if (sessionId === undefined) return
    clearTimeout(this.#paused.get(sessionId))
    this.#paused.delete(sessionId)
  }

  #ask(method: string, params: object, sessionId: string): number {
    const id = ++this.#lastOwnId
    this.#options.toChromium(JSON.stringify({ id, method, params, sessionId }))
    return id
  }
}
