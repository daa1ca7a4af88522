import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cdpCommandMethods } from '@berth/contract/browsers/telemetry-config.ts'
import { commandData, isReported } from './command-report.ts'

const secret = 'what nobody may read'

/** All parameters that may contain personal text, a path or an address. */
const params = {
  ...{
    text: secret,
    unmodifiedText: secret,
    key: 'a',
    code: secret,
    promptText: secret,
    scriptToEvaluateOnLoad: secret,
  },
  ...{ url: `https://user:${secret}@host/${secret}`, referrer: secret, files: [`/home/${secret}`], commands: [secret] },
  ...{
    headerTemplate: secret,
    footerTemplate: secret,
    pageRanges: secret,
    proxyServer: secret,
    proxyBypassList: secret,
  },
  data: { items: [{ mimeType: 'text/plain', data: secret }, { mimeType: secret }], files: [secret] },
  originsWithUniversalNetworkAccess: [secret],
  card: { number: secret, cvc: secret },
  address: { fields: [{ name: 'x', value: secret }] },
  ...{ type: secret, button: secret, format: secret, state: secret, transferMode: secret, windowState: secret },
}

for (const method of cdpCommandMethods) {
  test(`${method} is reported without texts, paths and addresses`, () => {
    assert.ok(isReported(method))

    const data = commandData({ id: 7, method, params, sessionId: 'S' }, 'connection')

    assert.equal(JSON.stringify(data).includes(secret), false, JSON.stringify(data))
    assert.deepEqual(
      [data.method, data.command_id, data.connection_id, data.session_id],
      [method, 7, 'connection', 'S'],
    )
  })
}

test('the report of a command contains its numbers, flags, counts and enum values', () => {
  for (const [method, given, expected] of [
    ['Input.insertText', { text: 'four' }, { text_length: 4 }],
    ['Input.insertText', {}, { text_length: 0 }],
    [
      'Input.dispatchMouseEvent',
      { type: 'mousePressed', x: 1.5, y: 2, button: 'left', clickCount: 1, pointerType: 'laser' },
      { event_type: 'mousePressed', x: 1.5, y: 2, button: 'left', click_count: 1, pointer_type: 'other' },
    ],
    ['Input.dispatchKeyEvent', { type: 'char', text: 'ä', key: 'ä' }, { event_type: 'char', text_length: 1 }],
    ['Input.dispatchKeyEvent', { type: 'keyDown', key: 'Enter' }, { event_type: 'keyDown', named_key: 'Enter' }],
    [
      'Input.dispatchTouchEvent',
      { type: 'touchStart', touchPoints: [{ x: 3, y: 4 }, {}] },
      { event_type: 'touchStart', touch_point_count: 2, x: 3, y: 4 },
    ],
    ['DOM.setFileInputFiles', { files: ['/a', '/b'], nodeId: 5 }, { file_count: 2, node_id: 5 }],
    ['Page.navigate', { url: 'HTTPS://host/path' }, { url_scheme: 'https' }],
    [
      'Page.printToPDF',
      { preferCSSPageSize: true, generateTaggedPDF: false },
      { prefer_css_page_size: true, generate_tagged_pdf: false },
    ],
    ['Browser.setWindowBounds', { windowId: 1, bounds: { width: 2 } }, { window_id: 1, width: 2 }],
    ['Target.closeTarget', { targetId: 'x'.repeat(200) }, { target_id: 'x'.repeat(128) }],
    ['Page.bringToFront', { any: 1 }, {}],
    ['Page.navigate', 'none', {}],
  ] as const) {
    const { method: _, connection_id: __, ...data } = commandData({ method, params: given }, 'connection')
    assert.deepEqual(data, expected, method)
  }
})
