import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attachedCapabilities } from './classic-capabilities.ts'
import { WebDriverError } from './webdriver-error.ts'

const address = { 'goog:chromeOptions': { debuggerAddress: '127.0.0.1:9222' } }

const taken: readonly [what: string, asked: object, always: object, first: readonly object[]][] = [
  ['nothing', {}, {}, [{}]],
  ['another name of the browser', { alwaysMatch: { browserName: 'chromium' } }, { browserName: 'chrome' }, [{}]],
  [
    'another browser, for chromedriver to refuse',
    { firstMatch: [{ browserName: 'firefox' }] },
    {},
    [{ browserName: 'firefox' }],
  ],
  [
    'what is for a browser that is started, or for BiDi',
    { alwaysMatch: { 'goog:chromeOptions': { args: ['--headless'] }, webSocketUrl: true, setWindowRect: true } },
    {},
    [{}],
  ],
  [
    'a proxy that changes nothing',
    { alwaysMatch: { proxy: { proxyType: 'direct' } } },
    { proxy: { proxyType: 'direct' } },
    [{}],
  ],
  ['all else', { alwaysMatch: { pageLoadStrategy: 'eager', 'x:y': 1 } }, { pageLoadStrategy: 'eager', 'x:y': 1 }, [{}]],
]
for (const [what, capabilities, always, firstMatch] of taken) {
  test(`accepts ${what}`, () => {
    assert.deepEqual(attachedCapabilities({ capabilities }, 9222), {
      capabilities: { alwaysMatch: { ...always, ...address }, firstMatch },
    })
  })
}

const manual = { proxyType: 'manual', httpProxy: 'proxy.test:80' }
const refused: readonly [what: string, parameters: unknown, error: string, message: RegExp][] = [
  ['no object', null, 'invalid argument', /the body must be an object/],
  ['no capabilities', {}, 'invalid argument', /capabilities must be an object/],
  ['capabilities of no kind', { capabilities: [] }, 'invalid argument', /capabilities must be an object/],
  ['alwaysMatch of no kind', { capabilities: { alwaysMatch: 1 } }, 'invalid argument', /alwaysMatch must be an object/],
  ['no choice', { capabilities: { firstMatch: [] } }, 'invalid argument', /firstMatch must be an array/],
  ['a choice of no kind', { capabilities: { firstMatch: [{}, 1] } }, 'invalid argument', /firstMatch\[1\] must be/],
  ['a proxy of its own', { capabilities: { alwaysMatch: { proxy: manual } } }, 'session not created', /PATCH/],
  [
    'a proxy as one of the choices',
    { capabilities: { firstMatch: [{ proxy: manual }] } },
    'session not created',
    /PATCH/,
  ],
]
for (const [what, parameters, error, message] of refused) {
  test(`rejects ${what}`, () => {
    assert.throws(
      () => attachedCapabilities(parameters, 9222),
      (thrown) => thrown instanceof WebDriverError && thrown.error === error && message.test(thrown.message),
    )
  })
}
