import type { MachineId } from '@berth/contract/common/ids.ts'

interface StartUnderWay {
  readonly cancel: AbortController
  /** Never rejects. */
  readonly settled: Promise<unknown>
}

/** The starts of machines in progress, so that a concurrent stop cancels them. */
export class MachineStarts {
  readonly #underWay = new Map<MachineId, StartUnderWay>()

  /** Rejects if the machine is already starting. `begin` must leave nothing of the machine when it is aborted. */
  async run<Machine>(
    id: MachineId,
    signal: AbortSignal,
    begin: (signal: AbortSignal) => Promise<Machine>,
  ): Promise<Machine> {
    signal.throwIfAborted()
    if (this.#underWay.has(id)) throw new Error(`the machine ${id} is already starting`)
    const cancel = new AbortController()
    const start = begin(AbortSignal.any([signal, cancel.signal]))
    // In the same turn, so that an immediate stop finds it.
    this.#underWay.set(id, { cancel, settled: start.catch(() => {}) })
    return start.finally(() => this.#underWay.delete(id))
  }

  /** Resolves when the machine is not starting, including one that never was. */
  async cancel(id: MachineId): Promise<void> {
    const start = this.#underWay.get(id)
    start?.cancel.abort(new Error('the machine was stopped while it was starting'))
    await start?.settled
  }
}
