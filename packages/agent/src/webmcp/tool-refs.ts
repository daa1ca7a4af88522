import { createHash } from 'node:crypto'

/** More than pages can hold at a time; the oldest are forgotten, as if their documents had gone. */
const maxRefs = 20_000

/** A tool of a document; with the document it is gone, whatever comes in its place. */
export interface ToolPlace {
  readonly targetId: string
  readonly frameId: string
  readonly documentId: string
  readonly name: string
  /** The custom tool of that name in the page; absent for the page's own. */
  readonly customId?: string
}

/** References that callers hold. The same tool has the same one each time that it is listed. */
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
