export interface AxNode {
  readonly nodeId: string
  readonly ignored: boolean
  readonly role?: { readonly value?: unknown }
  readonly name?: { readonly value?: unknown }
  readonly value?: { readonly value?: unknown }
  readonly properties?: readonly { readonly name: string; readonly value: { readonly value?: unknown } }[]
  readonly parentId?: string
  readonly childIds?: readonly string[]
  readonly backendDOMNodeId?: number
}

interface SnapshotNode {
  readonly role: string
  readonly name?: string
  readonly value?: unknown
  readonly backendNodeId?: number
  readonly children?: readonly SnapshotNode[]
  readonly [property: string]: unknown
}

/** Nodes whose text is the name of their parent. */
const pieces = new Set(['InlineTextBox', 'LineBreak'])
const properties = ['checked', 'disabled', 'expanded', 'focused', 'level', 'pressed', 'required', 'selected', 'url']

/** The tree without nodes that only serve layout. */
export function snapshotOf(nodes: readonly AxNode[]): SnapshotNode | undefined {
  const byId = new Map(nodes.map((node) => [node.nodeId, node]))
  const childrenOf = ({ childIds = [] }: AxNode): readonly SnapshotNode[] =>
    childIds.flatMap((id) => {
      const child = byId.get(id)
      if (!child || pieces.has(String(child.role?.value))) return []
      return isLayout(child) ? childrenOf(child) : [nodeOf(child)]
    })
  const nodeOf = (node: AxNode): SnapshotNode => {
    const children = childrenOf(node)
    const known = (node.properties ?? []).filter(
      ({ name, value }) => properties.includes(name) && value.value !== undefined,
    )
    return {
      role: String(node.role?.value),
      ...(node.name?.value ? { name: String(node.name.value) } : {}),
      ...(node.value?.value !== undefined && { value: node.value.value }),
      ...Object.fromEntries(known.map(({ name, value }) => [name, value.value])),
      ...(node.backendDOMNodeId !== undefined && { backendNodeId: node.backendDOMNodeId }),
      ...(children.length > 0 && { children }),
    }
  }
  const root = nodes.find(({ parentId }) => parentId === undefined)
  return root && nodeOf(root)
}

function isLayout({ ignored, role, name }: AxNode): boolean {
  return ignored || (['generic', 'none'].includes(String(role?.value)) && !name?.value)
}
