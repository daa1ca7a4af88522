/** With more names in one folder, the whole folder is compared. */
const maxNames = 1000
/** The kernel queues 16,384 events and silently drops the rest; from this number on, all folders are compared. */
const maxEvents = 8000

/** What to compare in one folder. */
export interface FolderMarks {
  /** Whether to compare all files in it. */
  isAll: boolean
  /** Each name, with how often it has appeared or disappeared. */
  readonly names: Map<string, number>
}

/** Where something has happened since the last comparison. */
export class Marks {
  readonly folders = new Map<string, FolderMarks>()
  /** Whether the limit was exceeded, so that short-lived names are not all known. */
  hasLost = false
  #events = 0

  get isEmpty(): boolean {
    return this.folders.size === 0
  }

  /** Whether the system may have dropped events. */
  get isFlood(): boolean {
    return this.#events > maxEvents
  }

  addAll(folder: string): void {
    this.#of(folder).isAll = true
  }

  add(folder: string, name: string, cameOrWent: boolean): void {
    this.#events += 1
    const marks = this.#of(folder)
    const known = marks.names.get(name)
    if (known === undefined && marks.names.size >= maxNames) {
      marks.isAll = true
      this.hasLost = true
    } else marks.names.set(name, (known ?? 0) + (cameOrWent ? 1 : 0))
  }

  #of(folder: string): FolderMarks {
    const known = this.folders.get(folder)
    if (known) return known
    const marks = { isAll: false, names: new Map<string, number>() }
    this.folders.set(folder, marks)
    return marks
  }
}
