import { shared } from './shared.ts'

/**
 * Writes a value into an element, or one character into each of several. The hosts are checked in the same call: no
 * code of the page runs between the check of the destination and the write.
 */
export const typeInto = `function (places, value, roots, isSecret) {${shared}
  const isWithin = (url) => {
    try {
      const { hostname, protocol } = new URL(url)
      if (!['http:', 'https:'].includes(protocol)) return false
      if (location.protocol === 'https:' && protocol !== 'https:') return false
      return roots.some((root) => hostname === root || hostname.endsWith('.' + root))
    } catch {
      return false
    }
  }
  const targets = places.map((place) => state.elements[place])
  const [first] = targets
  if (targets.some((element) => !element?.isConnected)) return { outcome: 'gone' }
  const form = formOf(first)
  const destinations = [self.origin, targetOf(form), ...(form ? [...form.querySelectorAll('[formaction]')].map((button) => targetOf(form, button)) : [])]
  const denied = isSecret ? destinations.find((url) => !isWithin(url)) : undefined
  if (denied !== undefined) return { outcome: 'denied', denied: String(denied).slice(0, 300) }
  const tell = (element, type) => element.dispatchEvent(new Event(type, { bubbles: true, composed: type === 'input' }))
  const key = (element, type, text) => element.dispatchEvent(new KeyboardEvent(type, { key: text, bubbles: true, composed: true }))
  const write = (element, text) => {
    if (element instanceof HTMLSelectElement) {
      const option = [...element.options].find((each) => each.value === text) ?? [...element.options].find((each) => each.label === text)
      if (!option) return false
      element.value = option.value
      tell(element, 'input')
      tell(element, 'change')
      return true
    }
    if (isDisabled(element) || element.readOnly) return false
    element.scrollIntoView({ block: 'center' })
    element.focus()
    if (!element.isConnected) return false
    const hasFocus = element.getRootNode().activeElement === element
    const isEditor = element.isContentEditable && !('value' in element)
    const before = isEditor ? element.textContent : element.value
    let hasChanged = false
    element.addEventListener('change', () => (hasChanged = true), { once: true })
    if (hasFocus) {
      if (isEditor) getSelection().selectAllChildren(element)
      else element.select?.()
      document.execCommand('insertText', false, text)
    }
    const now = () => (isEditor ? element.textContent : element.value)
    if (!isEditor && now() !== text && now() === before) {
      // The setter of the class, so that frameworks notice what they have not set themselves.
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')?.set?.call(element, text)
      tell(element, 'input')
    }
    key(element, 'keydown', 'Shift')
    key(element, 'keyup', 'Shift')
    if (!hasChanged) tell(element, 'change')
    return now() === text || (now() !== '' && now() !== before)
  }
  if (targets.length === 1) return { outcome: write(first, value) ? 'typed' : 'refused' }
  const characters = [...value]
  if (characters.length !== targets.length) return { outcome: 'refused' }
  let written = 0
  for (const [index, element] of targets.entries()) {
    // A page may send the code by itself with its last character.
    if (!element.isConnected) break
    if (write(element, characters[index])) written++
  }
  return { outcome: written > 0 ? 'typed' : 'refused' }
}`

/** Whether the values are still there: a page that has rendered again may have lost them. */
export const areFilled = `function (places) {${shared}
  return places.every((place) => {
    const element = state.elements[place]
    return !element?.isConnected || !('value' in element) || element.value !== ''
  })
}`

/** Leaves the field, for pages that validate a value only then. */
export const leaveField = `function (place) {${shared}
  state.elements[place]?.blur?.()
}`

/** Scrolls an element into view: returns where to press it, and whether anything covers it there. */
export const findPlace = `function (place) {${shared}
  let element = state.elements[place]
  if (!element?.isConnected) return { outcome: 'gone' }
  if (isToggle(element) && !element.checkVisibility({ opacityProperty: true })) element = element.labels?.[0] ?? element
  element.scrollIntoView({ block: 'center', inline: 'center' })
  const { x, y, width, height } = element.getBoundingClientRect()
  const point = { x: x + width / 2, y: y + height / 2 }
  let hit = document.elementFromPoint(point.x, point.y)
  while (hit && shadowOf(hit)) {
    const inner = shadowOf(hit).elementFromPoint(point.x, point.y)
    if (!inner || inner === hit) break
    hit = inner
  }
  const isOnTop = hit !== null && ([...ancestorsOf(hit)].includes(element) || [...ancestorsOf(element)].includes(hit) && hit.textContent === element.textContent)
  return { outcome: 'found', ...point, isOnTop, isDisabled: isDisabled(element) }
}`

/** Presses an element that the pointer does not reach. */
export const pressElement = `function (place) {${shared}
  const element = state.elements[place]
  if (!element?.isConnected) return false
  element.focus?.()
  element.click()
  return true
}`

/** Submits the form of a field without a button. */
export const submitForm = `function (place) {${shared}
  const element = state.elements[place]
  const form = element && formOf(element)
  if (!form) return false
  form.requestSubmit()
  return true
}`

/** Focuses the field. */
export const focusElement = `function (place) {${shared}
  const element = state.elements[place]
  element?.focus?.()
  return element !== undefined && element.getRootNode().activeElement === element
}`

/** Whether the element of a frame is visible. */
export const isFrameShown = `function () {
  const { width, height } = this.getBoundingClientRect()
  return width > 20 && height > 20 && this.checkVisibility({ opacityProperty: true, visibilityProperty: true })
}`
