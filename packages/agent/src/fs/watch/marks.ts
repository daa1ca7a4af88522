/** Of more names in one folder, all of it is looked at. */
const maxNames = 1000
/** The kernel keeps 16,384 events for us and drops the rest without a word; from here on all folders are looked at. */
const maxEvents = 8000

/** What is to be looked at in one folder. */
export interface FolderMarks {
  /** Whether everything in it is, besides the names. */
  isAll: boolean
  /** With how often each has come or gone. */
  readonly names: Map<string, number>
}

/** Where something has happened since the last look. */
export class Marks {
  readonly folders = new Map<string, FolderMarks>()
  /** Whether there was more than is kept: names that have come and gone are not all known. */
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
