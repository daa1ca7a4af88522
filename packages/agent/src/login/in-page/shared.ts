/** Declarations at the beginning of every function that runs in a page. They run in an isolated world of the agent. */
export const shared = `
  const state = (globalThis.berthLogin ??= { closedRoots: new WeakMap(), elements: [] })
  const shadowOf = (element) => element.shadowRoot ?? state.closedRoots.get(element)
  const parentOf = (node) => node.assignedSlot ?? node.parentElement ?? (node.getRootNode() instanceof ShadowRoot ? node.getRootNode().host : null)
  const ancestorsOf = function* (element) {
    for (let node = element, depth = 0; node && depth < 200; node = parentOf(node), depth++) yield node
  }
  const closest = (element, selector) => {
    for (const node of ancestorsOf(element)) if (node.matches(selector)) return node
    return null
  }
  const formOf = (element) => element.form ?? closest(element, 'form')
  const isTextInput = (element) =>
    element instanceof HTMLInputElement &&
    ['text', 'email', 'password', 'tel', 'url', 'search', 'number'].includes(element.type)
  const isToggle = (element) => element instanceof HTMLInputElement && ['checkbox', 'radio'].includes(element.type)
  const isDisabled = (element) => element.matches(':disabled') || element.getAttribute('aria-disabled') === 'true'
  /** Where the values of the element go, as far as the markup says. */
  const targetOf = (form, submitter) => {
    if (!form) return location.href
    try {
      const own = submitter?.getAttribute?.('formaction')
      return new URL(own ?? form.getAttribute('action') ?? '', document.baseURI).href
    } catch {
      return 'invalid:'
    }
  }`

/** Gives our code access to a closed shadow tree, like assistive technology. */
export const keepClosedRoots = `function (...pairs) {${shared}
  for (let index = 0; index < pairs.length; index += 2) state.closedRoots.set(pairs[index], pairs[index + 1])
}`
