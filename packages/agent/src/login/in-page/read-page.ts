import { shared } from './shared.ts'

/** Far more than a login page has; a larger page is read up to these limits. */
const limits = { nodes: 20_000, text: 12_000, fields: 60, controls: 250, messages: 20, label: 200, hosts: 40 }

/**
 * Reads a document like assistive technology: visible fields, controls, headings, messages and text, including open
 * shadow trees. Everything is bounded, because the page decides how much there is.
 */
export const readPage = String.raw`function () {${shared}
  const limits = ${JSON.stringify(limits)}
  const tidy = (text, length = limits.label) => String(text ?? '').replace(/\s+/g, ' ').trim().slice(0, length)
  const elements = []
  const at = (element) => elements.push(element) - 1
  const reading = { fields: [], toggles: [], controls: [], messages: [], headings: [], frames: [], captchas: [], hiddenLinks: [], hosts: [] }
  const groups = []
  const groupOf = (element) => {
    const container = formOf(element) ?? closest(element, 'dialog, [role="dialog"], [aria-modal="true"], section, article, main, aside, header, footer, nav, body') ?? document.body
    const index = groups.indexOf(container)
    return index === -1 ? groups.push(container) - 1 : index
  }
  const regionOf = (element) => {
    for (const node of ancestorsOf(element)) {
      if (node.matches('dialog, [role="dialog"], [role="alertdialog"], [aria-modal="true"]')) return 'dialog'
      if (node.matches('footer, [role="contentinfo"]')) return 'footer'
      if (node.matches('nav, [role="navigation"]')) return 'nav'
      if (node.matches('header, [role="banner"]') && !node.querySelector('input')) return 'header'
      if (node.matches('[role="search"], search')) return 'search'
    }
    return ''
  }
  let nodes = 0
  let textLength = 0
  const texts = []
  const addText = (text) => {
    if (textLength > limits.text) return
    const piece = text.slice(0, 2_000)
    textLength += piece.length
    texts.push(piece)
  }
  const textOf = (node, depth = 0) => {
    if (!node || depth > 12 || ++nodes > limits.nodes) return ''
    if (node.nodeType === 3) return node.data.slice(0, 400)
    if (node.nodeType !== 1) return ''
    if (node.matches('script, style, noscript, template')) return ''
    if (depth > 0 && node.getAttribute('aria-hidden') === 'true' && !node.matches('svg, img')) return ''
    const named = node.getAttribute('aria-label') ?? (node.matches('img, input[type="image"]') ? node.getAttribute('alt') : null)
    if (named) return ' ' + named.slice(0, 400) + ' '
    if (node instanceof HTMLInputElement) return ['submit', 'button', 'reset'].includes(node.type) ? node.value : ''
    if (node.matches('select, textarea')) return ''
    if (depth > 0) {
      const style = getComputedStyle(node)
      if (style.display === 'none' || style.visibility === 'hidden') return ''
    }
    const inner = shadowOf(node)?.childNodes ?? (node.localName === 'slot' && node.assignedNodes().length > 0 ? node.assignedNodes() : node.childNodes)
    let text = ''
    for (const child of inner) {
      if (text.length > 600) break
      text += textOf(child, depth + 1)
    }
    const isBlock = depth > 0 && !/^(inline|contents)/.test(getComputedStyle(node).display)
    return isBlock ? ' ' + text + ' ' : text
  }
  const byIds = (element, ids) => {
    const root = element.getRootNode()
    return ids ? ids.split(/\s+/).slice(0, 5).map((id) => textOf(root.getElementById?.(id) ?? document.getElementById(id))).join(' ') : ''
  }
  const nameOf = (element) => {
    const own = tidy(byIds(element, element.getAttribute('aria-labelledby'))) || tidy(element.getAttribute('aria-label'))
    if (own) return own
    if (isTextInput(element) || isToggle(element) || element.matches('select, textarea')) {
      const labels = tidy([...(element.labels ?? [])].map((label) => textOf(label)).join(' '))
      if (labels) return labels
      const host = element.getRootNode() instanceof ShadowRoot ? element.getRootNode().host : null
      const ofHost = tidy(host?.getAttribute('label') ?? host?.getAttribute('aria-label') ?? '')
      return ofHost || tidy(element.getAttribute('placeholder')) || tidy(element.getAttribute('title')) || nearbyText(element) || tidy(host?.getAttribute('placeholder'))
    }
    return tidy(textOf(element)) || tidy(element.getAttribute('alt')) || tidy(element.getAttribute('title')) || tidy(element.querySelector('svg title')?.textContent) || tidy(element.querySelector('img')?.getAttribute('src')?.split('/').pop(), 40)
  }
  /** What stands before a field that has no label. */
  const nearbyText = (element) => {
    for (let node = element, depth = 0; node && depth < 3; node = node.parentElement, depth++) {
      for (let before = node.previousSibling; before; before = before.previousSibling) {
        const text = tidy(textOf(before), 80)
        if (before.nodeType === 1 && before.querySelector?.('input, select, textarea')) return ''
        if (text) return text
      }
    }
    return ''
  }
  const boxOf = (element) => {
    const { x, y, width, height } = element.getBoundingClientRect()
    return { x: Math.round(x), y: Math.round(y), width: Math.round(width), height: Math.round(height) }
  }
  /** Outside of everything that can be scrolled to, or too small to be meant for people. */
  const isOutOfSight = (element) => {
    const { x, y, width, height } = element.getBoundingClientRect()
    if (width < 2 || height < 2) return true
    if (x + width + scrollX <= 0 || y + height + scrollY <= 0 || x > innerWidth + 4_000) return true
    for (const node of ancestorsOf(element)) {
      const { clip, clipPath, overflow, display } = getComputedStyle(node)
      if (/^rect\(0px,? 0px,? 0px,? 0px\)/.test(clip) || clipPath === 'inset(100%)' || clipPath === 'inset(50%)') return true
      if (overflow === 'visible' || display === 'contents' || node.matches('html, body')) continue
      const { width: seenWidth, height: seenHeight } = node.getBoundingClientRect()
      if (seenWidth < 2 || seenHeight < 2) return true
    }
    return false
  }
  const pathOf = (element, isXPath) => {
    const steps = []
    for (let node = element; node instanceof Element && steps.length < 30; node = node.parentElement) {
      const name = node.localName
      if (!isXPath && node.id && /^[A-Za-z][\w-]*$/.test(node.id)) {
        steps.unshift('#' + node.id)
        break
      }
      if (isXPath && node.id && !/["']/.test(node.id)) {
        steps.unshift('//*[@id="' + node.id + '"]')
        return steps.join('/').slice(0, 1_000)
      }
      let index = 1
      for (let before = node.previousElementSibling; before; before = before.previousElementSibling) if (before.localName === name) index++
      steps.unshift(isXPath ? name + '[' + index + ']' : name + ':nth-of-type(' + index + ')')
    }
    return (isXPath ? '/' + steps.join('/') : steps.join(' > ')).slice(0, 1_000)
  }
  /** The text around a control, which tells what it agrees to. */
  const contextOf = (element) => {
    let text = ''
    for (let node = element, depth = 0; node && node !== document.body && depth < 8; node = parentOf(node), depth++) {
      text = tidy(node.textContent, 400)
      if (text.length > 80) return text
    }
    return text
  }
  const buttonTypes = ['submit', 'button', 'image']
  const roles = ['button', 'link', 'menuitem', 'menuitemradio', 'option', 'tab', 'radio', 'listitem']
  const isControl = (element, style, isInside) => {
    if (isInside) return false
    if (element.matches('button, a[href], summary, input')) return !(element instanceof HTMLInputElement) || buttonTypes.includes(element.type)
    if (roles.includes(element.getAttribute('role')) && (element.getAttribute('role') !== 'listitem' || element.hasAttribute('tabindex'))) return true
    if (element.matches('label, select, textarea, html, body')) return false
    if (element.hasAttribute('onclick') || (element.hasAttribute('tabindex') && element.tabIndex >= 0 && style.cursor === 'pointer')) return true
    return style.cursor === 'pointer' && parentOf(element) && getComputedStyle(parentOf(element)).cursor !== 'pointer' && !element.querySelector('a, button, input')
  }
  const addField = (element) => {
    if (reading.fields.length >= limits.fields || isDisabled(element) || element.readOnly || element.type === 'search') return
    const form = formOf(element)
    const { type, name, id, value } = element
    const isSelect = element instanceof HTMLSelectElement
    reading.fields.push({
      at: at(element),
      type: isSelect ? 'select' : element.isContentEditable && !('value' in element) ? 'text' : type,
      name: tidy(name || element.getRootNode().host?.getAttribute?.('name'), 100),
      id: tidy(id || element.getRootNode().host?.id, 100),
      autocomplete: tidy(element.getAttribute('autocomplete'), 60).toLowerCase(),
      inputMode: tidy(element.getAttribute('inputmode'), 20),
      maxLength: element.maxLength > 0 ? element.maxLength : 0,
      pattern: tidy(element.getAttribute('pattern'), 60),
      role: element.getAttribute('role') ?? '',
      placeholder: tidy(element.getAttribute('placeholder')),
      label: nameOf(element),
      hint: tidy(byIds(element, element.getAttribute('aria-describedby')), 300),
      isRequired: element.required === true || element.getAttribute('aria-required') === 'true',
      isInvalid: element.getAttribute('aria-invalid') === 'true',
      nativeError: value && element.validity?.valid === false ? tidy(element.validationMessage, 300) : '',
      hasValue: Boolean(value),
      options: isSelect ? [...element.options].slice(0, 50).map((option) => ({ value: option.value.slice(0, 200), label: tidy(option.label) })) : undefined,
      group: groupOf(element),
      formTarget: targetOf(form, form?.querySelector('[type="submit"], button:not([type])')),
      region: regionOf(element),
      isTabbable: element.tabIndex >= 0,
      isOutOfSight: isOutOfSight(element),
      box: boxOf(element),
      selector: pathOf(element, false),
    })
  }
  const addToggle = (element, isSeen) => {
    if (reading.toggles.length >= limits.fields || isDisabled(element)) return
    const label = element.labels?.[0]
    if (!isSeen && !(label && label.checkVisibility() && !isOutOfSight(label))) return
    reading.toggles.push({
      at: at(element),
      type: element.type,
      name: tidy(element.name, 100),
      label: nameOf(element),
      isChecked: element.checked,
      isRequired: element.required || element.getAttribute('aria-required') === 'true',
      group: groupOf(element),
      region: regionOf(element),
      selector: pathOf(element, true),
    })
  }
  const addControl = (element) => {
    if (reading.controls.length >= limits.controls) return
    const label = nameOf(element)
    const form = formOf(element)
    const isSubmit = form !== null && (element.type === 'submit' || element.type === 'image')
    const marks = [element.id, element.getAttribute('class'), element.getAttribute('name'), element.getAttribute('data-provider'), element.getAttribute('data-testid'), element.getAttribute('value'), element.getAttribute('title'), [...element.querySelectorAll('img, svg, i, span')].slice(0, 4).map((each) => (each.getAttribute('alt') ?? '') + ' ' + (each.getAttribute('class') ?? '') + ' ' + (each.getAttribute('src') ?? '').slice(-60)).join(' ')]
    reading.controls.push({
      at: at(element),
      tag: element.localName,
      role: element.getAttribute('role') ?? '',
      label,
      href: element instanceof HTMLAnchorElement ? element.href.slice(0, 1_000) : '',
      marks: tidy(marks.filter(Boolean).join(' '), 400),
      context: contextOf(element),
      isSubmit,
      formTarget: form ? targetOf(form, element) : '',
      formHasFields: form ? [...form.elements].some(isTextInput) : false,
      isDisabled: isDisabled(element),
      isPressed: element.getAttribute('aria-pressed') === 'true' || element.getAttribute('aria-selected') === 'true' || element.getAttribute('aria-checked') === 'true',
      hasPopup: element.hasAttribute('aria-haspopup') || element.hasAttribute('aria-expanded'),
      group: groupOf(element),
      region: regionOf(element),
      isOutOfSight: isOutOfSight(element),
      box: boxOf(element),
      selector: pathOf(element, true),
    })
  }
  const messageLike = /(^|[\s_-])(error|errors|alert|invalid|danger|warning|fehler|failure|flash|notification|notice|toast|feedback|errormessage|error-message|form-error)([\s_-]|$)/i
  const addMessage = (element) => {
    if (reading.messages.length >= limits.messages) return
    const role = element.getAttribute('role')
    const live = element.getAttribute('aria-live')
    const marks = element.id + ' ' + (element.getAttribute('class') ?? '')
    const isAlert = role === 'alert' || live === 'assertive'
    const isStatus = role === 'status' || live === 'polite'
    const isMarked = messageLike.test(marks.replace(/([a-z])([A-Z])/g, '$1-$2'))
    const isRed = !isAlert && !isMarked && !isStatus && element.childElementCount === 0 && isReddish(getComputedStyle(element).color) && (element.textContent ?? '').trim().length > 12
    if (!isAlert && !isStatus && !isMarked && !isRed) return
    if (element.querySelector('input, form')) return
    const text = tidy(textOf(element), 300)
    if (text.length < 3) return
    reading.messages.push({ text, kind: isAlert ? 'alert' : isStatus ? 'status' : isMarked ? 'marked' : 'red', isError: /error|invalid|danger|fehler|fail/i.test(marks), isButton: closest(element, 'button, a') !== null })
  }
  const isReddish = (color) => {
    const [red = 0, green = 0, blue = 0] = (color.match(/\d+/g) ?? []).map(Number)
    return red > 150 && green < 90 && blue < 100
  }
  const captchaFrames = /recaptcha\/(api2|enterprise)\/(anchor|bframe)|hcaptcha\.com|challenges\.cloudflare\.com|arkoselabs|funcaptcha|captcha-delivery|geetest|perimeterx|px-captcha|captcha/i
  const addFrame = (element) => {
    if (reading.frames.length >= 40) return
    const { width, height } = element.getBoundingClientRect()
    const source = (element.getAttribute('src') ?? '').slice(0, 500)
    const title = tidy(element.title)
    const isShown = width > 20 && height > 20 && element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !isOutOfSight(element)
    reading.frames.push({ source: source.slice(0, 200), title, isShown })
    if (!isShown || closest(element, '.grecaptcha-badge')) return
    // A challenge that asks nothing has a small frame, or none.
    if (captchaFrames.test(source) || /captcha|challenge/i.test(title)) reading.captchas.push({ kind: 'frame', isLarge: height > 200 })
  }
  const captchaBoxes = '.g-recaptcha, .h-captcha, .cf-turnstile, [data-sitekey], #px-captcha, .geetest_holder, .slider-captcha, [id*="captcha" i][class], canvas[class*="captcha" i], img[src*="captcha" i], img[alt*="captcha" i], [class*="captcha-container" i]'
  const walk = (node, context) => {
    if (++nodes > limits.nodes) return
    if (node.nodeType === 3) {
      if (context.isSeen && node.data.trim()) addText(node.data.replace(/\s+/g, ' '))
      return
    }
    if (node.nodeType !== 1 && node.nodeType !== 11) return
    let inner = context
    if (node.nodeType === 1) {
      const element = node
      if (element.matches('script, style, noscript, template, head, object, embed')) return
      const style = getComputedStyle(element)
      if (style.display === 'none') {
        // What looks like a check box is often its label.
        for (const toggle of element.querySelectorAll('input[type="checkbox"], input[type="radio"]')) addToggle(toggle, false)
        if (isToggle(element)) addToggle(element, false)
        return
      }
      if (element.getAttribute('aria-hidden') === 'true' || element.hasAttribute('inert')) {
        if (!element.matches('svg, img')) return
      }
      if (Number(style.opacity) < 0.05) {
        if (isToggle(element)) addToggle(element, false)
        return
      }
      const isSeen = style.visibility === 'visible'
      if (isSeen) {
        if (isToggle(element)) addToggle(element, !isOutOfSight(element))
        else if (isTextInput(element) || element.matches('select') || (element.isContentEditable && element.getAttribute('role') === 'textbox')) addField(element)
        else if (element.localName === 'iframe' || element.localName === 'frame') addFrame(element)
        if (/^h[1-6]$/.test(element.localName) || element.getAttribute('role') === 'heading' || element.localName === 'legend') {
          if (reading.headings.length < 20) reading.headings.push(tidy(textOf(element)))
        }
        if (element.localName.includes('-') && !shadowOf(element) && reading.hosts.length < limits.hosts) reading.hosts.push(at(element))
        if (element.matches(captchaBoxes) && !closest(element, '.grecaptcha-badge')) {
          const { width, height } = element.getBoundingClientRect()
          if (width > 20 && height > 20 && element.getAttribute('data-size') !== 'invisible') reading.captchas.push({ kind: 'box', isLarge: height > 200 })
        }
        addMessage(element)
        if (isControl(element, style, context.isInControl)) {
          addControl(element)
          inner = { ...inner, isInControl: true }
        }
      }
      inner = { ...inner, isSeen }
      const isBlock = !/^(inline|contents)/.test(style.display)
      if (isBlock) addText('\n')
      const shadow = shadowOf(element)
      const children = shadow ? shadow.childNodes : element.localName === 'slot' && element.assignedNodes().length > 0 ? element.assignedNodes() : element.childNodes
      for (const child of children) walk(child, inner)
      if (isBlock) addText('\n')
      return
    }
    for (const child of node.childNodes) walk(child, inner)
  }
  if (document.body) walk(document.body, { isSeen: true, isInControl: false })
  const token = document.querySelector('[name="g-recaptcha-response"], [name="h-captcha-response"], [name="cf-turnstile-response"]')
  for (const link of [...document.querySelectorAll('a[href]')].slice(0, 500)) {
    if (reading.hiddenLinks.length >= 60) break
    if (!link.checkVisibility()) reading.hiddenLinks.push({ label: tidy(link.getAttribute('aria-label') ?? link.textContent, 80), href: link.href.slice(0, 1_000) })
  }
  const banners = [...document.querySelectorAll('[aria-busy="true"], [role="progressbar"], .spinner, .loader, .loading')].slice(0, 20)
  state.elements = elements
  return {
    ...reading,
    url: location.href.slice(0, 2_000),
    origin: self.origin,
    ancestors: [...(location.ancestorOrigins ?? [])].slice(0, 20),
    title: tidy(document.title),
    text: texts.join('').replace(/[ \t]+/g, ' ').replace(/\s*\n\s*/g, '\n').trim().slice(0, limits.text),
    readyState: document.readyState,
    isBusy: banners.some((element) => element.checkVisibility() && element.getBoundingClientRect().width > 0),
    hasCaptchaToken: Boolean(token?.value),
    hasRefresh: document.querySelector('meta[http-equiv="refresh" i]') !== null,
    width: innerWidth,
    height: innerHeight,
  }
}`
