interface Connection {
  /** Sends a close frame to the client and ends. */
  leave(): void
}

/** The BiDi connections of classic WebDriver sessions, by session id. */
export class ClassicConnections {
  readonly #open = new Map<string, Set<Connection>>()
  readonly #onEnd: (id: string) => void

  /** `onEnd` is called for each session that a client ends over BiDi. */
  constructor(onEnd: (id: string) => void) {
    this.#onEnd = onEnd
  }

  /** Registers a connection; the returned function removes it. */
  enter(id: string, connection: Connection): () => void {
    const ofSession = this.#open.get(id) ?? new Set()
    this.#open.set(id, ofSession.add(connection))
    return () => {
      ofSession.delete(connection)
      if (ofSession.size === 0) this.#open.delete(id)
    }
  }

  /** The classic session has ended, so its connections end. */
  close(id: string): void {
    for (const connection of this.#open.get(id) ?? []) connection.leave()
  }

  end(id: string): void {
    this.#onEnd(id)
  }
}
