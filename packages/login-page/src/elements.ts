type Child = Node | string | undefined | false

/** Creates an element. Texts become text nodes, never markup. */
export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string | boolean | undefined>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    made.setAttribute(key, value === true ? '' : value)
  }
  made.append(...children.filter((child): child is Node | string => child !== undefined && child !== false))
  return made
}

export function button(label: string, onClick: () => void, attributes: Readonly<Record<string, string>> = {}) {
  const made = make('button', { type: 'button', ...attributes }, label)
  made.addEventListener('click', onClick)
  return made
}
