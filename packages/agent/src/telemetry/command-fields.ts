import type { BrowserCdpCommandMethod } from '@berth/contract/browsers/telemetry-config.ts'
import type { z } from 'zod'

export type CdpCommandMethod = z.infer<typeof BrowserCdpCommandMethod>
type Params = Readonly<Record<string, unknown>>
export type FieldReader = (params: Params) => unknown
type Fields = Readonly<Record<string, FieldReader>>

const maxIdentifierLength = 128

const number =
  (name: string): FieldReader =>
  ({ [name]: value }) =>
    Number.isFinite(value) ? value : undefined
const flag =
  (name: string): FieldReader =>
  ({ [name]: value }) =>
    typeof value === 'boolean' ? value : undefined
const identifier =
  (name: string): FieldReader =>
  ({ [name]: value }) =>
    typeof value === 'string' ? value.slice(0, maxIdentifierLength) : undefined
const lengthOf =
  (name: string): FieldReader =>
  ({ [name]: value }) =>
    typeof value === 'string' ? value.length : undefined
const countOf =
  (name: string): FieldReader =>
  ({ [name]: value }) =>
    Array.isArray(value) ? value.length : undefined
const isPresent =
  (name: string): FieldReader =>
  ({ [name]: value }) =>
    value ? true : undefined
const always =
  (reader: FieldReader, otherwise: unknown): FieldReader =>
  (params) =>
    reader(params) ?? otherwise
const choice =
  (name: string, ...known: readonly string[]): FieldReader =>
  ({ [name]: value }) => {
    if (typeof value !== 'string') return undefined
    return known.includes(value) ? value : 'other'
  }
const within =
  (name: string, reader: FieldReader): FieldReader =>
  ({ [name]: value }) =>
    typeof value === 'object' && value !== null ? reader(value as Params) : undefined
const firstOf =
  (name: string, reader: FieldReader): FieldReader =>
  ({ [name]: value }) =>
    Array.isArray(value) && typeof value[0] === 'object' && value[0] !== null ? reader(value[0]) : undefined

/** Fields of one name, in snake case. */
const numbers = (...names: readonly string[]): Fields =>
  Object.fromEntries(names.map((name) => [snakeCase(name), number(name)]))
const flags = (...names: readonly string[]): Fields =>
  Object.fromEntries(names.map((name) => [snakeCase(name), flag(name)]))
const identifiers = (...names: readonly string[]): Fields =>
  Object.fromEntries(names.map((name) => [snakeCase(name), identifier(name)]))

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

const urlScheme: FieldReader = ({ url }) => {
  const scheme = typeof url === 'string' ? /^([a-z][a-z0-9+.-]{0,31}):/i.exec(url)?.[1] : undefined
  return scheme?.toLowerCase()
}
const eventType = (...known: readonly string[]) => always(choice('type', ...known), 'other')
const mouseEventType = eventType('mousePressed', 'mouseReleased', 'mouseMoved', 'mouseWheel')
const button = choice('button', 'none', 'left', 'middle', 'right', 'back', 'forward')
const gestureSource = choice('gestureSourceType', 'default', 'touch', 'mouse')
const windowState = choice('windowState', 'normal', 'minimized', 'maximized', 'fullscreen')
const node: Fields = { ...numbers('backendNodeId', 'nodeId'), ...identifiers('objectId') }
/** Keys that enter no text. */
const namedKey: FieldReader = ({ key }) =>
  typeof key === 'string' && /^[A-Z][A-Za-z0-9]{1,31}$/.test(key) ? key : undefined

const mimeGroups = ['text', 'image', 'audio', 'video', 'application', 'font', 'model', 'multipart', 'message']
const dragCategories: FieldReader = ({ items }) => {
  if (!Array.isArray(items)) return undefined
  const groups = items.slice(0, 100).map((item) => String(item?.mimeType ?? '').split('/')[0] ?? '')
  return [...new Set(groups.map((group) => (mimeGroups.includes(group) ? group : 'other')))]
}

/** The reported fields of each command. */
export const readers: Readonly<Record<CdpCommandMethod, Fields>> = {
  'Input.dispatchMouseEvent': {
    event_type: mouseEventType,
    button,
    ...numbers('buttons', 'clickCount', 'deltaX', 'deltaY', 'force', 'modifiers'),
    pointer_type: choice('pointerType', 'mouse', 'pen'),
    ...numbers('tangentialPressure', 'tiltX', 'tiltY', 'twist', 'x', 'y'),
  },
  'Input.dispatchKeyEvent': {
    event_type: eventType('keyDown', 'keyUp', 'rawKeyDown', 'char'),
    ...flags('autoRepeat', 'isKeypad', 'isSystemKey'),
    command_count: countOf('commands'),
    ...numbers('location', 'modifiers'),
    named_key: namedKey,
    text_length: lengthOf('text'),
  },
  'Input.insertText': { text_length: always(lengthOf('text'), 0) },
  'Input.imeSetComposition': {
    text_length: always(lengthOf('text'), 0),
    ...numbers('replacementStart', 'replacementEnd', 'selectionStart', 'selectionEnd'),
  },
  'Input.dispatchTouchEvent': {
    event_type: eventType('touchStart', 'touchEnd', 'touchMove', 'touchCancel'),
    touch_point_count: always(countOf('touchPoints'), 0),
    modifiers: number('modifiers'),
    ...Object.fromEntries(
      ['force', 'radiusX', 'radiusY', 'rotationAngle', 'tangentialPressure', 'tiltX', 'tiltY', 'twist', 'x', 'y'].map(
        (name) => [snakeCase(name), firstOf('touchPoints', number(name))],
      ),
    ),
  },
  'Input.dispatchDragEvent': {
    event_type: eventType('dragEnter', 'dragOver', 'drop', 'dragCancel'),
    drag_file_count: within('data', countOf('files')),
    drag_item_count: within('data', countOf('items')),
    drag_mime_categories: within('data', dragCategories),
    drag_operations_mask: within('data', number('dragOperationsMask')),
    ...numbers('modifiers', 'x', 'y'),
  },
  'Input.cancelDragging': {},
  'Input.emulateTouchFromMouseEvent': {
    event_type: mouseEventType,
    button,
    ...numbers('clickCount', 'deltaX', 'deltaY', 'modifiers', 'x', 'y'),
  },
  'Input.synthesizePinchGesture': {
    gesture_source_type: gestureSource,
    ...numbers('relativeSpeed', 'scaleFactor', 'x', 'y'),
  },
  'Input.synthesizeScrollGesture': {
    gesture_source_type: gestureSource,
    ...flags('preventFling'),
    ...numbers(
      'repeatCount',
      'repeatDelayMs',
      'speed',
      'x',
      'y',
      'xDistance',
      'yDistance',
      'xOverscroll',
      'yOverscroll',
    ),
  },
  'Input.synthesizeTapGesture': {
    gesture_source_type: gestureSource,
    ...numbers('duration', 'tapCount', 'x', 'y'),
  },
  'DOM.setFileInputFiles': { file_count: always(countOf('files'), 0), ...node },
  'DOM.focus': node,
  'DOM.scrollIntoViewIfNeeded': {
    ...node,
    ...Object.fromEntries(['x', 'y', 'width', 'height'].map((name) => [`rect_${name}`, within('rect', number(name))])),
  },
  'Page.bringToFront': {},
  'Page.captureScreenshot': {
    format: choice('format', 'jpeg', 'png', 'webp'),
    quality: number('quality'),
    ...flags('captureBeyondViewport', 'fromSurface', 'optimizeForSpeed'),
    ...Object.fromEntries(
      ['x', 'y', 'width', 'height', 'scale'].map((name) => [`clip_${name}`, within('clip', number(name))]),
    ),
  },
  'Page.captureSnapshot': { format: choice('format', 'mhtml') },
  'Page.handleJavaScriptDialog': { accept: always(flag('accept'), false), prompt_text_length: lengthOf('promptText') },
  'Page.navigate': {
    url_scheme: urlScheme,
    frame_id: identifier('frameId'),
    referrer_present: isPresent('referrer'),
    referrer_policy: choice(
      'referrerPolicy',
      ...['noReferrer', 'noReferrerWhenDowngrade', 'origin', 'originWhenCrossOrigin', 'sameOrigin'],
      ...['strictOrigin', 'strictOriginWhenCrossOrigin', 'unsafeUrl'],
    ),
    transition_type: choice(
      'transitionType',
      ...['link', 'typed', 'address_bar', 'auto_bookmark', 'auto_subframe', 'manual_subframe', 'generated'],
      ...['auto_toplevel', 'form_submit', 'reload', 'keyword', 'keyword_generated'],
    ),
  },
  'Page.navigateToHistoryEntry': { entry_id: always(number('entryId'), 0) },
  'Page.reload': {
    ...flags('ignoreCache'),
    ...identifiers('loaderId'),
    script_length: lengthOf('scriptToEvaluateOnLoad'),
  },
  'Page.printToPDF': {
    ...flags('displayHeaderFooter', 'generateDocumentOutline', 'landscape', 'printBackground'),
    prefer_css_page_size: flag('preferCSSPageSize'),
    generate_tagged_pdf: flag('generateTaggedPDF'),
    footer_template_present: isPresent('footerTemplate'),
    header_template_present: isPresent('headerTemplate'),
    page_ranges_present: isPresent('pageRanges'),
    ...numbers('marginTop', 'marginBottom', 'marginLeft', 'marginRight', 'paperHeight', 'paperWidth', 'scale'),
    transfer_mode: choice('transferMode', 'ReturnAsBase64', 'ReturnAsStream'),
  },
  'Page.startScreencast': {
    format: choice('format', 'jpeg', 'png'),
    ...numbers('quality', 'everyNthFrame', 'maxHeight', 'maxWidth'),
  },
  'Page.stopScreencast': {},
  'Page.stopLoading': {},
  'Page.close': {},
  'Page.setWebLifecycleState': { state: always(choice('state', 'frozen', 'active'), 'other') },
  'Target.activateTarget': { target_id: always(identifier('targetId'), '') },
  'Target.closeTarget': { target_id: always(identifier('targetId'), '') },
  'Target.createTarget': {
    url_scheme: urlScheme,
    ...flags('background', 'enableBeginFrameControl', 'focus', 'forTab', 'hidden', 'newWindow'),
    ...identifiers('browserContextId'),
    ...numbers('left', 'top', 'width', 'height'),
    window_state: windowState,
  },
  'Target.createBrowserContext': {
    ...flags('disposeOnDetach'),
    proxy_bypass_list_present: isPresent('proxyBypassList'),
    proxy_server_present: isPresent('proxyServer'),
    universal_network_access_origin_count: countOf('originsWithUniversalNetworkAccess'),
  },
  'Target.disposeBrowserContext': { browser_context_id: always(identifier('browserContextId'), '') },
  'Target.openDevTools': { target_id: always(identifier('targetId'), ''), ...identifiers('panelId') },
  'Browser.cancelDownload': { download_guid: always(identifier('guid'), ''), ...identifiers('browserContextId') },
  'Browser.close': {},
  'Browser.setWindowBounds': {
    window_id: always(number('windowId'), 0),
    ...Object.fromEntries(['left', 'top', 'width', 'height'].map((name) => [name, within('bounds', number(name))])),
    window_state: within('bounds', windowState),
  },
  'Browser.setContentsSize': { window_id: always(number('windowId'), 0), ...numbers('width', 'height') },
  'Autofill.trigger': {
    field_id: always(number('fieldId'), 0),
    address_field_count: within('address', countOf('fields')),
    frame_id: identifier('frameId'),
    mode: ({ card, address }) => (card ? 'card' : address ? 'address' : undefined),
  },
}
