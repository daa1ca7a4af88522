/** What a program is started with besides its command. */
export interface ProgramOptions {
  readonly onOutput: (stream: OutputName, bytes: Buffer) => void
}

export type OutputName = 'stdout' | 'stderr'

/** A program behind pipes or in a terminal; it leads a session and process group of its own. */
export interface Program {
  readonly pid: number
  /** The exit code, -1 after a signal; resolves when all output has been delivered. Never rejects. */
  readonly ended: Promise<number>
  /** Pauses the program's output; has no effect after its end. */
  pause(): void
  resume(): void
  /** Resolves when the program's pipe or terminal has taken all of it; rejects if it cannot. */
  write(bytes: Uint8Array): Promise<void>
  resize?(rows: number, columns: number): void
}
