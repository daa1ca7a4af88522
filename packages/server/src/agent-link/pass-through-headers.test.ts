import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isBrowser, passedRequestHeaders, passedResponseHeaders } from './pass-through-headers.ts'

const ofSdk = { 'user-agent': 'Kernel/JS 0.84.0', 'x-stainless-lang': 'js', accept: '*/*', 'accept-language': '*' }

test('programs are distinguished from browsers, also if they claim to be one', () => {
  assert.equal(isBrowser(ofSdk), false)
  assert.equal(isBrowser({ ...ofSdk, 'user-agent': 'Mozilla/5.0' }), false)
  assert.equal(isBrowser({ 'user-agent': 'curl/8.0' }), false)
  assert.equal(isBrowser({ 'sec-fetch-mode': 'cors', 'user-agent': 'node' }), false)
  assert.equal(isBrowser({ 'sec-fetch-site': 'cross-site', ...ofSdk }), true)
  assert.equal(isBrowser({ origin: 'https://x.test', ...ofSdk }), true)
  assert.equal(isBrowser({ 'user-agent': 'Mozilla/5.0 (X11)' }), true)
})

test('headers of clients, libraries and proxies are not forwarded', () => {
  const passed = passedRequestHeaders({
    ...ofSdk,
    ...{
      host: 'berth',
      connection: 'keep-alive',
      'x-forwarded-for': '1.2.3.4',
      via: '1.1 x',
      'x-kernel-project-id': 'p',
    },
    ...{ 'content-type': 'text/plain', authorization: 'Bearer own', cookie: 'own=1', 'content-length': '3' },
  })

  assert.deepEqual(passed, {
    ...{ accept: '*/*', 'content-type': 'text/plain', authorization: 'Bearer own' },
    ...{ cookie: 'own=1', 'content-length': '3' },
  })
  assert.equal(passedRequestHeaders({ 'user-agent': 'node' })['user-agent'], undefined)
  assert.equal(passedRequestHeaders({ ...ofSdk, 'user-agent': 'mine/1' })['user-agent'], 'mine/1')
})

test('headers that concern the origin of berth pass in neither direction', () => {
  const caller = { origin: 'https://x.test', cookie: 'berth=1', referer: 'https://x.test/', 'x-mine': 'yes' }
  const answer = {
    ...{ 'content-type': 'text/html', 'set-cookie': ['a=1'], 'clear-site-data': '"*"', location: '/', refresh: '0' },
    ...{ 'strict-transport-security': 'max-age=1', 'service-worker-allowed': '/', 'www-authenticate': 'Basic' },
  }

  assert.deepEqual(passedRequestHeaders(caller), { 'x-mine': 'yes' })
  assert.deepEqual(passedResponseHeaders(answer, caller), { 'content-type': 'text/html' })
})

test('a program sees the whole response except for CORS headers', () => {
  const answer = { 'set-cookie': ['a=1', 'b=2'], 'x-two': 'a, b', 'access-control-allow-origin': 'https://x.test' }

  assert.deepEqual(passedResponseHeaders(answer, ofSdk), { 'set-cookie': ['a=1', 'b=2'], 'x-two': 'a, b' })
})
