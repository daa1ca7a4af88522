/**
 * Runs once in each document, in an isolated world. It never reports the values of fields, or keys pressed in sensitive
 * ones.
 */
export const interactionScript = (binding: string): string => `if (!globalThis.observesInteractions) {
  globalThis.observesInteractions = true
  const report = (payload) => globalThis[${JSON.stringify(binding)}]?.(payload)
  const maxText = 200
  const maxSelector = 500
  const scrollSettledMilliseconds = 400
  const sensitive = /password|passwd|secret|token|otp|one-time|cvc|cvv|cc-|card/i

  const elementOf = (event) => {
    const [first] = event.composedPath()
    return first instanceof Element ? first : null
  }
  const selectorOf = (element) => {
    const parts = []
    for (let current = element; current && parts.length < 6; current = current.parentElement) {
      const tag = current.tagName.toLowerCase()
      if (current.id) {
        parts.unshift(\`\${tag}#\${CSS.escape(current.id)}\`)
        break
      }
      const same = [...(current.parentElement?.children ?? [])].filter(({ tagName }) => tagName === current?.tagName)
      parts.unshift(same.length > 1 ? \`\${tag}:nth-of-type(\${same.indexOf(current) + 1})\` : tag)
    }
    return parts.join(' > ').slice(0, maxSelector)
  }
  const isField = (element) => element.matches('input, textarea, select, [contenteditable]')
  const isSensitive = (element) =>
    element.matches('input[type=password]') ||
    ['name', 'id', 'autocomplete'].some((name) => sensitive.test(element.getAttribute(name) ?? ''))

  addEventListener(
    'click',
    (event) => {
      const element = elementOf(event)
      if (!element || !event.isTrusted) return
      const text = element.innerText
      const named = isField(element) || isSensitive(element) || typeof text !== 'string' ? {} : { text: text.slice(0, maxText) }
      const [x, y] = [Math.round(event.clientX), Math.round(event.clientY)]
      report(JSON.stringify({ kind: 'click', x, y, selector: selectorOf(element), tag: element.tagName.toLowerCase(), ...named }))
    },
    { capture: true, passive: true },
  )
  addEventListener(
    'keydown',
    (event) => {
      const element = elementOf(event)
      if (!element || !event.isTrusted || (isField(element) && isSensitive(element))) return
      const tag = element.tagName.toLowerCase()
      report(JSON.stringify({ kind: 'key', key: event.key, selector: selectorOf(element), tag }))
    },
    { capture: true, passive: true },
  )

  const positionOf = (target) =>
    target instanceof Document ? [scrollX, scrollY] : [target.scrollLeft, target.scrollTop]
  const scrolling = new Map()
  const known = new WeakMap()
  addEventListener(
    'scroll',
    (event) => {
      const target = event.target
      const from = scrolling.get(target)?.from ?? known.get(target) ?? [0, 0]
      clearTimeout(scrolling.get(target)?.timer)
      const settle = () => {
        scrolling.delete(target)
        const to = positionOf(target)
        known.set(target, to)
        const [from_x, from_y, to_x, to_y] = [...from, ...to].map(Math.round)
        const selector = target instanceof Document ? 'document' : selectorOf(target)
        report(JSON.stringify({ kind: 'scroll', from_x, from_y, to_x, to_y, target_selector: selector }))
      }
      if (scrolling.size < 100) scrolling.set(target, { from, timer: setTimeout(settle, scrollSettledMilliseconds) })
    },
    { capture: true, passive: true },
  )
}`
