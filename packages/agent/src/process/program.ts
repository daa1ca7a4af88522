/** What a program is started with besides its command. */
export interface ProgramOptions {
  readonly onOutput: (stream: OutputName, bytes: Buffer) => void
}

export type OutputName = 'stdout' | 'stderr'

/** A program that was started, behind pipes or in a terminal; it leads a session and process group of its own. */
export interface Program {
  readonly pid: number
  /** The exit code, -1 after an end by a signal; resolves when all that it wrote has been given out. Never rejects. */
  readonly ended: Promise<number>
  /** Lets the program wait with what it writes; once it has ended there is nothing to wait. */
  pause(): void
  resume(): void
  /** Resolves when the program's pipe or terminal has taken all of it; rejects when it cannot. */
  write(bytes: Uint8Array): Promise<void>
  resize?(rows: number, columns: number): void
}
