const stepPercent = 20

const phases = { dlstatus: 'downloaded', pmstatus: 'installed' } as const

/** Condenses apt's progress, which arrives several times a second, to a few lines. */
export class AptProgress {
  readonly #print: (line: string) => void
  /** The last reported step of each phase. */
  readonly #lastReported = { dlstatus: 0, pmstatus: 0 }

  constructor(say: (line: string) => void) {
    this.#print = say
  }

  /** Returns whether the line of apt was a progress line: `dlstatus:3:41.2:Retrieving file 3 of 9`. */
  read(line: string): boolean {
    const [, phase, percent] = /^(dlstatus|pmstatus):[^:]*(?::\w+)?:([\d.]+):/.exec(line) ?? []
    if (phase !== 'dlstatus' && phase !== 'pmstatus') return false

    const step = Math.floor(Number(percent) / stepPercent) * stepPercent
    if (step > this.#lastReported[phase]) this.#print(`${step} % ${phases[phase]}`)
    this.#lastReported[phase] = Math.max(step, this.#lastReported[phase])
    return true
  }
}
