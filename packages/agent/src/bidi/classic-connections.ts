interface Connection {
  /** Says goodbye to the client and ends. */
  leave(): void
}

/** The BiDi connections that belong to sessions of classic WebDriver, by the session's id. */
export class ClassicConnections {
  readonly #open = new Map<string, Set<Connection>>()
  readonly #onEnd: (id: string) => void

  /** `onEnd` hears of each session that a client ends over BiDi. */
  constructor(onEnd: (id: string) => void) {
    this.#onEnd = onEnd
  }

  /** Counts a connection in; the function that it returns counts it out. */
  enter(id: string, connection: Connection): () => void {
    const ofSession = this.#open.get(id) ?? new Set()
    this.#open.set(id, ofSession.add(connection))
    return () => {
      ofSession.delete(connection)
      if (ofSession.size === 0) this.#open.delete(id)
    }
  }

  /** The classic session has ended: its connections end with it. */
  close(id: string): void {
    for (const connection of this.#open.get(id) ?? []) connection.leave()
  }

  end(id: string): void {
    this.#onEnd(id)
  }
}
