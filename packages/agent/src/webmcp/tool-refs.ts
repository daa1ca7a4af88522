import { createHash } from 'node:crypto'

/** More than pages can have at a time; the oldest are dropped as if their documents had closed. */
const maxRefs = 20_000

/** A tool of a document; it ends with the document, whatever replaces it. */
export interface ToolPlace {
  readonly targetId: string
  readonly frameId: string
  readonly documentId: string
  readonly name: string
  /** The custom tool of that name in the page; absent for the page's own. */
  readonly customId?: string
}

/** References that callers hold. The same tool has the same reference each time it is listed. */
export class ToolRefs {
  readonly #places = new Map<string, ToolPlace>()

  refOf(place: ToolPlace): string {
    const { targetId, frameId, documentId, name, customId = '' } = place
    const key = JSON.stringify([targetId, frameId, documentId, name, customId])
    const ref = `tool_${createHash('sha256').update(key).digest('hex').slice(0, 32)}`
    this.#places.delete(ref)
    this.#places.set(ref, place)
    if (this.#places.size > maxRefs) this.#places.delete(this.#places.keys().next().value as string)
    return ref
  }

  find(ref: string): ToolPlace | undefined {
    return this.#places.get(ref)
  }
}
