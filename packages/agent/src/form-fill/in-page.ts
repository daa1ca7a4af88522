/*
 * Functions that run in the frames of a page, in an isolated world: the page's changes to JavaScript do not affect it,
 * and the page does not see its elements and values.
 */

/** Declarations at the beginning of both functions. */
const shared = `
  const textTypes = ['text', 'email', 'password', 'tel', 'url', 'search', 'number']
  const pickedTypes = ['date', 'month', 'week', 'time', 'datetime-local']
  const isEditable = (element) => {
    if (element.matches(':disabled') || element.closest('[inert]')) return false
    if (element instanceof HTMLSelectElement) return true
    if (element instanceof HTMLTextAreaElement) return !element.readOnly
    if (element instanceof HTMLInputElement) {
      return !element.readOnly && [...textTypes, ...pickedTypes].includes(element.type)
    }
    return element instanceof HTMLElement && element.isContentEditable && !element.parentElement?.isContentEditable
  }`

/**
 * Finds the editable elements of each selector and stores those that match exactly once under the name of the fill.
 * Open shadow trees count as part of the page.
 */
export const findElements = `function (fillId, selectors) {${shared}
  const maxElements = 100
  const rootsIn = (root) => {
    const inner = [...root.querySelectorAll('*')].flatMap((element) => (element.shadowRoot ? rootsIn(element.shadowRoot) : []))
    return [root, ...inner]
  }
  const editablesIn = (match) => {
    if (isEditable(match)) return [match]
    const roots = [match, ...(match.shadowRoot ? [match.shadowRoot] : [])].flatMap(rootsIn)
    return roots.flatMap((root) => [...root.querySelectorAll('*')].filter(isEditable))
  }
  const roots = rootsIn(document)
  const elements = []
  const found = selectors.map((selector, index) => {
    let matches
    try {
      matches = roots.flatMap((root) => [...root.querySelectorAll(selector)]).slice(0, maxElements)
    } catch {
      return { isInvalid: true, matches: 0, editables: 0, sameAs: -1 }
    }
    const editables = [...new Set(matches.flatMap(editablesIn))]
    const element = editables.length === 1 ? editables[0] : undefined
    const sameAs = element ? elements.indexOf(element) : -1
    elements[index] = element
    return { isInvalid: false, matches: matches.length, editables: editables.length, sameAs }
  })
  globalThis.berthFill = { id: fillId, elements }
  return { origin: self.origin, found }
}`

/**
 * Writes into a found element as similarly to typing as possible: the page receives the events of an edit by its user.
 * No code of the page runs between the last check of the focus and the edit, so nothing is typed elsewhere.
 */
export const writeElement = `function (fillId, index, value) {${shared}
  const kept = globalThis.berthFill
  const element = kept?.id === fillId ? kept.elements[index] : undefined
  if (!element?.isConnected) return 'target_changed'
  if (!isEditable(element)) return 'element_not_editable'
  const tell = (type) => element.dispatchEvent(new Event(type, { bubbles: true, composed: type === 'input' }))
  if (element instanceof HTMLSelectElement) {
    if (![...element.options].some((option) => option.value === value && !option.disabled)) return 'option_not_found'
    element.value = value
    tell('input')
    tell('change')
    return element.value === value ? 'filled' : 'execution_failed'
  }
  let hasChanged = false
  element.addEventListener('change', () => (hasChanged = true), { once: true })
  element.focus()
  if (!element.isConnected || !isEditable(element)) return 'target_changed'
  if (element.isContentEditable && !('value' in element)) {
    if (document.activeElement === element) {
      getSelection().selectAllChildren(element)
      document.execCommand('insertText', false, value)
    }
    if (!element.textContent.trim()) {
      element.textContent = value
      tell('input')
    }
    element.blur()
    return element.textContent.trim() ? 'filled' : 'execution_failed'
  }
  const before = element.value
  if (!pickedTypes.includes(element.type) && element.getRootNode().activeElement === element) {
    element.select()
    document.execCommand('insertText', false, value)
  }
  if (element.value !== value && element.value === before) {
    element.value = value
    tell('input')
  }
  const isFilled = element.value !== '' && (element.value === value || element.value !== before)
  element.blur()
  if (!hasChanged) tell('change')
  return isFilled ? 'filled' : 'execution_failed'
}`

export interface FoundInFrame {
  readonly origin: string
  readonly found: readonly {
    readonly isInvalid: boolean
    readonly matches: number
    readonly editables: number
    /** The earlier selector that found the same element, or -1. */
    readonly sameAs: number
  }[]
}
