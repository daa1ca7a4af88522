import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerHeaders, requestHeaders } from './headers.ts'
import { parseRequestTarget, parseTunnelTarget } from './request-target.ts'

test('sends a request on in its order and spelling, as if there were no proxy', () => {
  const raw = [
    'Host',
    'page.test',
    'Proxy-Connection',
    'keep-alive',
    'sec-ch-ua',
    '"x"',
    'X-Two',
    '1',
    'X-Two',
    '2',
    'Accept',
    '*/*',
  ]

  const headers = requestHeaders(raw, 'page.test')

  assert.deepEqual(headers, [
    'Host',
    'page.test',
    'Connection',
    'keep-alive',
    'sec-ch-ua',
    '"x"',
    'X-Two',
    '1',
    'X-Two',
    '2',
    'Accept',
    '*/*',
  ])
})

test('sends on nothing that concerns the connection to the proxy', () => {
  const raw = [
    ...[
      'Host',
      'lie.test',
      'host',
      'again.test',
      'Proxy-Authorization',
      'Basic c2VjcmV0',
      'Proxy-Anything',
      'x',
      'Keep-Alive',
      'timeout=5',
    ],
    ...[
      'Connection',
      'close, X-Mine',
      'X-Mine',
      'x',
      'TE',
      'trailers',
      'Trailer',
      'X',
      'Upgrade',
      'h2c',
      'Connection',
      'Other',
      'Other',
      'x',
    ],
  ]

  assert.deepEqual(requestHeaders(raw, 'page.test:81'), ['Host', 'page.test:81', 'Connection', 'keep-alive'])
})

test('lets no Connection header take away what the message needs', () => {
  const raw = ['Connection', 'content-length, host, transfer-encoding', 'Content-Length', '3', 'Host', 'page.test']

  assert.deepEqual(requestHeaders(raw, 'page.test'), [
    'Connection',
    'keep-alive',
    'Content-Length',
    '3',
    'Host',
    'page.test',
  ])
})

test('keeps the length of a body unknown where it was', () => {
  assert.deepEqual(requestHeaders(['Host', 'a', 'Transfer-Encoding', 'chunked'], 'a'), [
    'Host',
    'a',
    'Transfer-Encoding',
    'chunked',
  ])
})

test('asks for an upgrade in place of what the client asked', () => {
  const raw = ['Host', 'a', 'Upgrade', 'websocket', 'Connection', 'keep-alive, Upgrade', 'Sec-WebSocket-Key', 'k']

  assert.deepEqual(requestHeaders(raw, 'a', 'websocket'), [
    'Host',
    'a',
    'Upgrade',
    'websocket',
    'Connection',
    'Upgrade',
    'Sec-WebSocket-Key',
    'k',
  ])
})

test('names the host where the client did not', () => {
  assert.deepEqual(requestHeaders(['Accept', '*/*'], 'page.test'), ['Host', 'page.test', 'Accept', '*/*'])
})

test('sends an answer on without what a server could not say without a proxy', () => {
  const raw = [
    ...[
      'Set-Cookie',
      'a=1',
      'Set-Cookie',
      'b=2',
      'Proxy-Authenticate',
      'Basic',
      'X-Berth-Egress',
      'refused',
      'Connection',
      'X-Hop',
    ],
    ...['X-Hop', 'x', 'Keep-Alive', 'timeout=5', 'Bad\u0001Name', 'x', 'X-Bad', 'a\u0000b', 'X-Latin', 'caf\u00e9'],
  ]

  assert.deepEqual(answerHeaders(raw), ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'X-Latin', 'caf\u00e9'])
})

test('does not trust the length of an answer that is chunked as well', () => {
  assert.deepEqual(answerHeaders(['Content-Length', '3', 'Transfer-Encoding', 'chunked', 'A', 'b']), ['A', 'b'])
})

test('reads the target of a request, and keeps its path as it was written', () => {
  const target = parseRequestTarget('HTTP://Page.Test:81/a%2Fb/../c?q=1&r#fragment')

  assert.deepEqual(target, {
    destination: { host: { kind: 'name', name: 'page.test' }, port: 81 },
    authority: 'Page.Test:81',
    path: '/a%2Fb/../c?q=1&r',
  })
  assert.equal(parseRequestTarget('http://page.test')?.path, '/')
  assert.equal(parseRequestTarget('http://page.test?q')?.path, '/?q')
  assert.equal(parseRequestTarget('http://page.test/')?.destination.port, 80)
})

test('reads no target from what a proxy does not serve', () => {
  const requests = words(`
    / * page.test http:/page.test http:// http:///x https://page.test/ ftp://page.test/ file:///etc/passwd http://user@page.test/
    http://user:secret@page.test/ http://page.test:0/ http://page.test:99999/ http://p\u00e4ge.test/ http://[::1/
    http://1.2.3.4.5/ http://127.0.0.1\\@page.test/
  `)
  const tunnels = words(`
    page.test :443 page.test: http://page.test:80 page.test:443/ user@page.test:443 p\u00e4ge.test:443 ::1:443
    [fe80::1%25eth0]:443 127.0.0.1..:443
  `)

  for (const text of ['', 'http://a b/', ...requests]) assert.equal(parseRequestTarget(text), undefined, text)
  for (const text of ['', ' page.test:443', ...tunnels]) assert.equal(parseTunnelTarget(text), undefined, text)
})

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}
