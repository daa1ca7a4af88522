/*
 * Functions that run in pages: each is sent there as source code, and uses only its argument. Plain JavaScript, because
 * DOM types would apply to the whole agent, which has no DOM.
 */

/**
 * What stands in the way of the element, or where to click it. Only one match can be meant.
 *
 * @param {string} selector
 * @returns {{ problem?: string, x?: number, y?: number }}
 */
export function stateOfElement(selector) {
  const isShown = (element) => {
    const { width, height } = element.getBoundingClientRect()
    return width > 0 && height > 0 && getComputedStyle(element).visibility === 'visible'
  }
  const matches = [...document.querySelectorAll(selector)]
  const shown = matches.filter(isShown)
  const [element] = shown
  if (!element) return { problem: matches.length > 0 ? 'no match is visible' : 'there is no match' }
  if (shown.length > 1) return { problem: `${shown.length} visible elements match` }
  if (element.matches(':disabled')) return { problem: 'the element is disabled' }
  element.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' })
  const { left, top, width, height } = element.getBoundingClientRect()
  const [x, y] = [left + width / 2, top + height / 2]
  const hit = element.getRootNode().elementFromPoint(x, y)
  if (!hit) return { problem: 'the element is outside the window' }
  if (!element.contains(hit) && !hit.contains(element)) {
    return { problem: `<${hit.tagName.toLowerCase()}> covers the element` }
  }
  return { x, y }
}

/** @param {{ selector: string, state: string }} asked */
export function isInState({ selector, state }) {
  const element = document.querySelector(selector)
  const { width = 0, height = 0 } = element?.getBoundingClientRect() ?? {}
  const isVisible = element && width > 0 && height > 0 && getComputedStyle(element).visibility === 'visible'
  return { attached: element !== null, detached: element === null, visible: !!isVisible, hidden: !isVisible }[state]
}

/**
 * Puts the cursor where typed text is to go.
 *
 * @param {{ selector: string, clearsFirst: boolean }} asked
 */
export function focusForText({ selector, clearsFirst }) {
  const element = document.querySelector(selector)
  element?.focus()
  if (!element || !clearsFirst) return
  if (typeof element.select === 'function') element.select()
  else getSelection()?.selectAllChildren(element)
}

/** @param {string} selector */
export function tellOfChange(selector) {
  document.querySelector(selector)?.dispatchEvent(new Event('change', { bubbles: true }))
}

/** @param {{ selector: string, key: string, event: string, keyCode: number }} asked */
export function dispatchKeyEvent({ selector, key, event, keyCode }) {
  const element = document.querySelector(selector)
  element?.focus()
  element?.dispatchEvent(new KeyboardEvent(event, { key, code: key, keyCode, which: keyCode, bubbles: true }))
  return element !== null
}

export function describePage() {
  const { documentElement: root } = document
  return {
    url: location.href,
    title: document.title,
    viewport: { width: innerWidth, height: innerHeight },
    document: { width: root.scrollWidth, height: root.scrollHeight },
    scroll: { x: scrollX, y: scrollY },
    readyState: document.readyState,
  }
}
