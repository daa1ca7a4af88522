/** The part of the DOM that reading a page needs, because the server is compiled without the types of browsers. */
export interface PageNode {
  readonly nodeType: number
  readonly textContent: string | null
  readonly childNodes: Iterable<PageNode>
}

export interface PageElement extends PageNode {
  readonly localName: string
  readonly className: string
  readonly outerHTML: string
  readonly parentElement: PageElement | null
  getAttribute(name: string): string | null
  setAttribute(name: string, value: string): void
  removeAttribute(name: string): void
  querySelector(selector: string): PageElement | null
  querySelectorAll(selector: string): Iterable<PageElement>
  remove(): void
}

export interface PageDocument extends PageElement {
  readonly body: PageElement | null
  readonly documentElement: PageElement
  cloneNode(isDeep: boolean): PageDocument
}
