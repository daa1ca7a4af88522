/*
 * Functions that run in the frames of a page, in an isolated world: the page's changes to JavaScript do not affect it.
 * References are stored in that world, so they are lost with the document.
 */

/** Declarations at the beginning of all functions. */
const shared = `
  const kept = (globalThis.berthPage ??= { next: 1, refs: new WeakMap(), elements: new Map() })
  const refOf = (element) => {
    let ref = kept.refs.get(element)
    if (ref === undefined) {
      ref = kept.next++
      kept.refs.set(element, ref)
      kept.elements.set(ref, new WeakRef(element))
    }
    return ref
  }
  const elementOf = (ref) => {
    const element = kept.elements.get(ref)?.deref()
    return element?.isConnected ? element : undefined
  }
  const clean = (text) => text.replace(/\\s+/g, ' ').trim()
  const short = (text, length = 200) => (text.length > length ? text.slice(0, length) + '…' : text)
  const implicit = {
    A: (e) => (e.hasAttribute('href') ? 'link' : undefined), BUTTON: () => 'button', TEXTAREA: () => 'textbox',
    SELECT: (e) => (e.multiple || e.size > 1 ? 'listbox' : 'combobox'), SUMMARY: () => 'button',
    IMG: (e) => (e.getAttribute('alt') === '' ? 'none' : 'img'), H1: () => 'heading', H2: () => 'heading', H3: () => 'heading',
    H4: () => 'heading', H5: () => 'heading', H6: () => 'heading', NAV: () => 'navigation', MAIN: () => 'main',
    DIALOG: () => 'dialog', OPTION: () => 'option', TABLE: () => 'table', TR: () => 'row', IFRAME: () => 'iframe',
    FRAME: () => 'iframe', VIDEO: () => 'video', AUDIO: () => 'audio', PROGRESS: () => 'progressbar', METER: () => 'meter',
    INPUT: (e) => ({ button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio',
      range: 'slider', number: 'spinbutton', search: 'searchbox', file: 'file', color: 'color', hidden: 'none' })[e.type] ?? 'textbox',
  }
  const usable = new Set(['link', 'button', 'textbox', 'searchbox', 'combobox', 'listbox', 'checkbox', 'radio', 'slider', 'spinbutton',
    'file', 'color', 'option', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'tab', 'switch', 'treeitem'])
  const namedByContent = new Set([...usable, 'heading', 'tooltip'])
  const roleOf = (element) => {
    const explicit = element.getAttribute('role')?.trim().split(/\\s+/)[0]
    if (explicit && explicit !== 'presentation' && explicit !== 'none' && explicit !== 'generic') return explicit
    return implicit[element.tagName]?.(element)
  }
  const isShown = (element) =>
    element.checkVisibility({ visibilityProperty: true }) || getComputedStyle(element).display === 'contents'
  const childrenOf = (node) => {
    if (node.shadowRoot) return node.shadowRoot.childNodes
    if (node.tagName === 'SLOT') { const given = node.assignedNodes({ flatten: true }); if (given.length > 0) return given }
    return node.childNodes
  }
  const textIn = (node, limit = 400) => {
    let text = ''
    const visit = (each) => {
      if (text.length > limit) return
      if (each.nodeType === 3) text += each.data
      else if (each.nodeType === 1 && !/^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE)$/.test(each.tagName) && each.getAttribute('aria-hidden') !== 'true' && isShown(each)) {
        if (each.tagName === 'IMG') text += ' ' + (each.alt || '') + ' '
        else if (each.getAttribute('aria-label')) text += ' ' + each.getAttribute('aria-label') + ' '
        else { const isBlock = !/^(A|B|I|EM|STRONG|SPAN|CODE|SMALL|SUP|SUB|U|MARK)$/.test(each.tagName); if (isBlock) text += ' '; for (const child of childrenOf(each)) visit(child); if (isBlock) text += ' ' }
      }
    }
    for (const child of childrenOf(node)) visit(child)
    return clean(text)
  }
  const nameOf = (element, role) => {
    const root = element.getRootNode()
    const by = element.getAttribute('aria-labelledby')
    const labelled = by && clean(by.split(/\\s+/).map((id) => root.getElementById?.(id)?.textContent ?? '').join(' '))
    if (labelled) return labelled
    const label = clean(element.getAttribute('aria-label') ?? '')
    if (label) return label
    if (element.labels?.length > 0) { const text = clean([...element.labels].map((each) => textIn(each)).join(' ')); if (text) return text }
    if (element.tagName === 'INPUT' && ['submit', 'button', 'reset'].includes(element.type)) return clean(element.value) || element.type
    if (element.tagName === 'IMG' || element.type === 'image') return clean(element.alt ?? '')
    if (namedByContent.has(role) && !/^(INPUT|SELECT|TEXTAREA)$/.test(element.tagName)) { const text = textIn(element); if (text) return text }
    return clean(element.getAttribute('placeholder') ?? element.getAttribute('title') ?? '')
  }
  const isClickable = (element) =>
    element.isContentEditable ? !element.parentElement?.isContentEditable
      : element.hasAttribute('onclick') || (element.hasAttribute('tabindex') && element.tabIndex >= 0) ||
        (getComputedStyle(element).cursor === 'pointer' && (!element.parentElement || getComputedStyle(element.parentElement).cursor !== 'pointer'))`

/** The page as lines: `{ lines, isTruncated }`. Frames have a line with their number in document order. */
export const readSnapshot = `function (prefix, interactive, maxChars) {${shared}
  const lines = []
  let length = 0
  let isTruncated = false
  let buffer = ''
  const emit = (depth, line) => {
    if (isTruncated) return
    const text = ' '.repeat(depth) + line
    length += text.length + 1
    if (length > maxChars) isTruncated = true
    else lines.push(text)
  }
  const flush = (depth) => {
    const text = clean(buffer)
    buffer = ''
    if (text && !interactive) emit(depth, short(text, 1000))
  }
  const statesOf = (element, role) => {
    const states = []
    const flag = (name, value) => { if (value) states.push(name) }
    const tag = element.tagName
    if (role === 'heading') states.push(element.getAttribute('aria-level') ?? (/^H[1-6]$/.test(tag) ? tag[1] : '2'))
    if (tag === 'A') { const href = element.getAttribute('href') ?? ''; if (href && !href.startsWith('javascript:') && !interactive) states.push(short(href, 120)) }
    if (tag === 'INPUT' || tag === 'TEXTAREA') {
      if (element.type === 'password') flag('filled', element.value !== '')
      else if (!['button', 'submit', 'reset', 'checkbox', 'radio', 'file', 'image'].includes(element.type) && element.value) states.push('=' + JSON.stringify(short(element.value)))
      if (element.type === 'file') flag('=' + JSON.stringify([...element.files].map((file) => file.name).join(', ')), element.files.length > 0)
      if (tag === 'INPUT' && !['text', 'checkbox', 'radio', 'submit', 'button', 'search', 'file', 'number', 'range', 'image', 'reset'].includes(element.type)) states.push(element.type)
    } else if (element.isContentEditable) { const text = textIn(element); if (text) states.push('=' + JSON.stringify(short(text))) }
    if (tag === 'SELECT') {
      states.push('=' + JSON.stringify([...element.selectedOptions].map((option) => clean(option.label)).join(', ')))
      const options = [...element.options].slice(0, 30).map((option) => clean(option.label))
      states.push('[' + options.join(' | ') + (element.options.length > 30 ? ' | …' : '') + ']')
    }
    flag('checked', element.checked === true || element.getAttribute('aria-checked') === 'true')
    flag('selected', element.getAttribute('aria-selected') === 'true')
    flag('expanded', element.getAttribute('aria-expanded') === 'true' || (tag === 'SUMMARY' && element.parentElement?.open))
    flag('collapsed', element.getAttribute('aria-expanded') === 'false')
    flag('disabled', element.matches(':disabled') || element.getAttribute('aria-disabled') === 'true')
    flag('required', element.required === true || element.getAttribute('aria-required') === 'true')
    flag('invalid', element.getAttribute('aria-invalid') === 'true')
    flag('focused', element.getRootNode().activeElement === element && element !== document.body)
    return states.length > 0 ? ' ' + states.join(' ') : ''
  }
  const inline = /^(A|ABBR|B|BDI|BDO|CITE|CODE|DFN|EM|FONT|I|KBD|LABEL|MARK|Q|S|SAMP|SMALL|SPAN|STRONG|SUB|SUP|TIME|U|VAR|WBR|SLOT)$/
  const groups = new Set(['navigation', 'main', 'dialog', 'alertdialog', 'alert', 'search', 'menu', 'tablist', 'table', 'region', 'form', 'banner', 'contentinfo', 'group', 'radiogroup', 'listbox', 'tree', 'toolbar', 'tabpanel', 'row'])
  const visit = (node, depth) => {
    if (isTruncated) return
    if (node.nodeType === 3) { buffer += node.data; return }
    if (node.nodeType !== 1) return
    const element = node
    const tag = element.tagName
    if (/^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|HEAD|LINK|META)$/.test(tag)) return
    if (tag === 'BR') { buffer += ' '; return }
    // Its text is the name of its field.
    if (tag === 'LABEL' && element.control && isShown(element)) { for (const each of element.querySelectorAll('a[href],button,input,select,textarea')) visit(each, depth); return }
    if (element.getAttribute('aria-hidden') === 'true' || !isShown(element)) return
    const role = roleOf(element)
    if (tag === 'svg') { const name = clean(element.getAttribute('aria-label') ?? element.querySelector('title')?.textContent ?? ''); if (name) buffer += ' ' + name + ' '; return }
    const isUsable = usable.has(role) || (!role && isClickable(element))
    if (role === 'iframe') {
      flush(depth)
      emit(depth, prefix + 'e' + refOf(element) + ' iframe' + quoted(nameOf(element, role)))
      return
    }
    if (isUsable) {
      flush(depth)
      const shownRole = role ?? (element.isContentEditable ? 'textbox' : 'clickable')
      const name = role || element.isContentEditable ? nameOf(element, shownRole) : clean(element.getAttribute('aria-label') ?? '') || textIn(element)
      const inner = !/^(INPUT|SELECT|TEXTAREA|BUTTON)$/.test(tag) && !element.isContentEditable && element.querySelector('a[href],button,input:not([type=hidden]),select,textarea,[role=button],[role=link],[role=checkbox]')
      if (inner && !role) { for (const child of childrenOf(element)) visit(child, depth); flush(depth); return }
      emit(depth, prefix + 'e' + refOf(element) + ' ' + shownRole + quoted(name) + statesOf(element, role))
      if (inner && role !== 'link') for (const child of inner ? element.querySelectorAll('a[href],button,input:not([type=hidden]),select,textarea') : []) visit(child, depth + 1)
      return
    }
    if (role === 'heading') {
      flush(depth)
      if (!interactive) emit(depth, 'heading' + quoted(nameOf(element, role)) + statesOf(element, role))
      for (const child of element.querySelectorAll('a[href],button')) visit(child, depth + 1)
      return
    }
    if (role === 'img') { const name = nameOf(element, role); if (name) { flush(depth); if (!interactive) emit(depth, 'img' + quoted(name)) } return }
    if (role === 'row' && !interactive && !element.querySelector('a[href],button,input,select,textarea,[role]')) {
      flush(depth)
      const cells = [...element.children].map((cell) => textIn(cell))
      if (cells.some(Boolean)) emit(depth, 'row ' + cells.join(' | '))
      return
    }
    const isInline = !role && inline.test(tag)
    if (!isInline) flush(depth)
    const name = groups.has(role) ? clean(element.getAttribute('aria-label') ?? '') : ''
    const isGroup = groups.has(role) && role !== 'row' && (name || ['navigation', 'main', 'dialog', 'alertdialog', 'alert', 'table'].includes(role))
    if (isGroup) emit(depth, role + quoted(name))
    for (const child of childrenOf(element)) visit(child, isGroup ? depth + 1 : depth)
    if (!isInline) flush(isGroup ? depth + 1 : depth)
  }
  function quoted(name) { return name ? ' ' + JSON.stringify(short(name)) : '' }
  if (document.body) visit(document.body, 0)
  flush(0)
  return { lines, isTruncated }
}`

/** The page as Markdown: `{ markdown, isTruncated }`. */
export const readMarkdown = `function (maxChars) {${shared}
  const skipped = new Set(['navigation', 'banner', 'contentinfo', 'complementary', 'search'])
  const main = document.querySelector('main, [role=main], article') ?? document.body
  let text = ''
  const escape = (part) => part.replace(/([\\\\\`*_\\[\\]])/g, '\\\\$1')
  const span = (node) => {
    if (node.nodeType === 3) return escape(node.data.replace(/\\s+/g, ' '))
    if (node.nodeType !== 1 || /^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|BUTTON|SELECT|INPUT|TEXTAREA|svg)$/.test(node.tagName) || !isShown(node)) return ''
    const inner = () => [...childrenOf(node)].map(span).join('')
    const wrap = (mark) => { const part = inner(); return part.trim() ? part.replace(/^(\\s*)([\\s\\S]*?)(\\s*)$/, '$1' + mark + '$2' + mark + '$3') : part }
    switch (node.tagName) {
      case 'A': { const part = inner().trim(); return node.href && part && /^https?:/.test(node.href) ? '[' + part + '](' + node.href + ')' : part }
      case 'B': case 'STRONG': return wrap('**')
      case 'I': case 'EM': return wrap('*')
      case 'CODE': case 'KBD': case 'SAMP': return '\`' + node.textContent + '\`'
      case 'BR': return '\\n'
      case 'IMG': return node.alt ? '![' + escape(node.alt) + '](' + node.src.slice(0, 500) + ')' : ''
      default: return inner()
    }
  }
  const add = (part) => { const trimmed = part.replace(/[ \\t]+/g, ' ').trim(); if (trimmed) text += trimmed + '\\n\\n' }
  const blocks = /^(ADDRESS|ARTICLE|ASIDE|BLOCKQUOTE|DETAILS|DIV|DL|DD|DT|FIGURE|FIGCAPTION|FOOTER|FORM|H[1-6]|HEADER|HR|LI|MAIN|NAV|OL|P|PRE|SECTION|TABLE|UL|BODY|FIELDSET)$/
  const hasBlocks = (node) => [...childrenOf(node)].some((child) => child.nodeType === 1 && (blocks.test(child.tagName) || hasBlocks(child)))
  const list = (node, depth) => {
    let index = Number(node.start) || 1
    for (const item of node.children) {
      if (item.tagName !== 'LI' || !isShown(item)) continue
      const nested = [...item.children].filter((child) => /^(UL|OL)$/.test(child.tagName))
      const own = [...childrenOf(item)].filter((child) => !nested.includes(child)).map(span).join('').replace(/\\s+/g, ' ').trim()
      if (own) text += '  '.repeat(depth) + (node.tagName === 'OL' ? index++ + '. ' : '- ') + own + '\\n'
      for (const child of nested) list(child, depth + 1)
    }
    if (depth === 0) text += '\\n'
  }
  const visit = (node) => {
    if (text.length > maxChars) return
    if (node.nodeType === 3) return add(escape(node.data.replace(/\\s+/g, ' ')))
    if (node.nodeType !== 1 || /^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|BUTTON|SELECT|INPUT|TEXTAREA|svg|IFRAME)$/.test(node.tagName)) return
    const role = node.getAttribute('role') ?? { NAV: 'navigation', ASIDE: 'complementary' }[node.tagName] ??
      (node.parentElement === document.body ? { HEADER: 'banner', FOOTER: 'contentinfo' }[node.tagName] : undefined)
    if (skipped.has(role) || node.getAttribute('aria-hidden') === 'true' || !isShown(node)) return
    const tag = node.tagName
    if (/^H[1-6]$/.test(tag)) return add('#'.repeat(Number(tag[1])) + ' ' + span(node).replace(/\\s+/g, ' ').trim())
    if (tag === 'UL' || tag === 'OL') return list(node, 0)
    if (tag === 'PRE') { text += '\`\`\`\\n' + node.textContent.replace(/\\n$/, '') + '\\n\`\`\`\\n\\n'; return }
    if (tag === 'HR') return add('---')
    if (tag === 'TABLE') {
      const rows = [...node.rows].map((row) => [...row.cells].map((cell) => span(cell).replace(/\\s+/g, ' ').replaceAll('|', '\\\\|').trim()))
      if (rows.length > 0) text += rows.map((row, index) => '| ' + row.join(' | ') + ' |' + (index === 0 ? '\\n|' + row.map(() => '---|').join('') : '')).join('\\n') + '\\n\\n'
      return
    }
    if (tag === 'BLOCKQUOTE') { const before = text; text = ''; for (const child of childrenOf(node)) visit(child); const inner = text.trim(); text = before + inner.split('\\n').map((line) => '> ' + line).join('\\n') + '\\n\\n'; return }
    if (!hasBlocks(node)) return add(span(node))
    let inlines = ''
    for (const child of childrenOf(node)) {
      if (child.nodeType === 1 && (blocks.test(child.tagName) || hasBlocks(child))) { add(inlines); inlines = ''; visit(child) }
      else inlines += span(child)
    }
    add(inlines)
  }
  if (main) visit(main)
  const markdown = text.trim()
  return { markdown: markdown.slice(0, maxChars), isTruncated: markdown.length > maxChars }
}`

/** Where to click: `{ x, y }` in the frame, or `{ fault }`. */
export const findPoint = `function (ref) {${shared}
  const element = elementOf(ref)
  if (!element) return { fault: 'gone' }
  if (element.matches(':disabled') || element.getAttribute('aria-disabled') === 'true') return { fault: 'is disabled.' }
  const target = element.tagName === 'OPTION' ? element.closest('select') ?? element : element
  target.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' })
  const rects = [...target.getClientRects()].filter(({ width, height }) => width > 0 && height > 0)
  if (rects.length === 0 || !isShown(target)) return { fault: 'is not visible.' }
  let cover
  for (const rect of rects) {
    const left = Math.max(rect.left, 0), right = Math.min(rect.right, innerWidth), top = Math.max(rect.top, 0), bottom = Math.min(rect.bottom, innerHeight)
    if (right <= left || bottom <= top) continue
    for (const [dx, dy] of [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75]]) {
      const x = left + (right - left) * dx, y = top + (bottom - top) * dy
      let hit = document.elementFromPoint(x, y)
      while (hit?.shadowRoot) { const inner = hit.shadowRoot.elementFromPoint(x, y); if (!inner || inner === hit) break; hit = inner }
      const within = (outer, inner) => { for (let each = inner; each; each = each.parentNode ?? each.host) if (each === outer) return true; return false }
      if (hit && (within(target, hit) || within(hit, target) && !hit.matches('a,button,input,[role=dialog],dialog') || [...(target.labels ?? [])].some((label) => within(label, hit)))) return { x, y }
      cover ??= hit
    }
  }
  if (!cover) return { fault: 'cannot be scrolled into view.' }
  const role = roleOf(cover) ?? cover.tagName.toLowerCase()
  const name = short(nameOf(cover, role) || textIn(cover), 60)
  return { fault: 'is covered by ' + role + (name ? ' ' + JSON.stringify(name) : '') + ' (' + (usable.has(role) ? 'e' + refOf(cover) : 'no reference') + ').' }
}`

/** Focuses the element and selects its content: `{}` or `{ fault }`. */
export const focusElement = `function (ref, mode) {${shared}
  const element = elementOf(ref)
  if (!element) return { fault: 'gone' }
  if (element.matches(':disabled')) return { fault: 'is disabled.' }
  const isText = (element.tagName === 'INPUT' && !['checkbox', 'radio', 'button', 'submit', 'reset', 'file', 'image', 'range', 'color'].includes(element.type)) || element.tagName === 'TEXTAREA'
  if (mode !== 'focus' && !isText && !element.isContentEditable) return { fault: 'takes no text.' }
  if (mode !== 'focus' && element.readOnly) return { fault: 'can only be read.' }
  element.scrollIntoView({ block: 'nearest', behavior: 'instant' })
  element.focus({ preventScroll: true })
  let active = document.activeElement
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement
  if (active !== element && !element.contains(active)) return { fault: 'does not take the focus.' }
  if (mode === 'focus') return {}
  if (['date', 'month', 'week', 'time', 'datetime-local'].includes(element.type)) return { isPicker: true }
  if (element.isContentEditable) {
    const selection = getSelection()
    selection.selectAllChildren(element)
    if (mode === 'append') selection.collapseToEnd()
  } else if (mode === 'append') { try { element.setSelectionRange(element.value.length, element.value.length) } catch {} }
  else element.select()
  return { isEmpty: !element.isContentEditable && element.value === '' }
}`

/** Sets the value of a field that text cannot be typed into, such as a date. */
export const setValue = `function (ref, value) {${shared}
  const element = elementOf(ref)
  if (!element) return { fault: 'gone' }
  const { set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')
  set.call(element, value)
  element.dispatchEvent(new Event('input', { bubbles: true, composed: true }))
  element.dispatchEvent(new Event('change', { bubbles: true }))
  return element.value === value ? {} : { fault: 'does not take this value.' }
}`

export const chooseOptions = `function (ref, values) {${shared}
  const found = elementOf(ref)
  if (!found) return { fault: 'gone' }
  const element = found.tagName === 'OPTION' ? found.closest('select') : found
  if (element?.tagName !== 'SELECT') return { fault: 'is not a list of options.' }
  if (element.matches(':disabled')) return { fault: 'is disabled.' }
  if (values.length > 1 && !element.multiple) return { fault: 'takes one option only.' }
  const options = values.map((value) => [...element.options].find((option) => !option.disabled && (option.value === value || clean(option.label) === clean(value))))
  const missing = values[options.findIndex((option) => !option)]
  if (missing !== undefined) return { fault: 'has no option ' + JSON.stringify(missing) + '.' }
  element.focus()
  for (const option of element.options) option.selected = options.includes(option)
  element.dispatchEvent(new Event('input', { bubbles: true, composed: true }))
  element.dispatchEvent(new Event('change', { bubbles: true }))
  return { selected: [...element.selectedOptions].map((option) => option.value) }
}`

/** The element itself, for a command that takes an object. */
export const getElement = `function (ref) {${shared}
  return elementOf(ref)
}`

/** Visible elements with their areas, for marks on a picture. */
export const findMarks = `function (maxMarks) {${shared}
  const marks = []
  for (const [ref, weak] of kept.elements) {
    const element = weak.deref()
    if (!element) { kept.elements.delete(ref); continue }
    if (!element.isConnected || marks.length >= maxMarks || !isShown(element)) continue
    const { left, top, right, bottom } = element.getBoundingClientRect()
    const x = Math.max(0, left), y = Math.max(0, top), width = Math.min(innerWidth, right) - x, height = Math.min(innerHeight, bottom) - y
    if (width >= 4 && height >= 4) marks.push({ ref, x, y, width, height })
  }
  return marks
}`

/** The visible text of a page, to search in it. */
export const readText = `function () { return document.body?.innerText.slice(0, 2000000) ?? '' }`

/** Whether the document is still being parsed. */
export const isParsing = `function () { return document.readyState === 'loading' }`
