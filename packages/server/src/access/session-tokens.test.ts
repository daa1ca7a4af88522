import assert from 'node:assert/strict'
import test from 'node:test'
import { newId } from '@berth/contract/common/ids.ts'
import { SignJWT } from 'jose'
import { SessionTokens } from './session-tokens.ts'

const createdAt = new Date('2026-01-02T03:04:05Z')
const sessionId = newId('session', createdAt)

test('gives a session the same token every time, also after a restart', async () => {
  const first = await new SessionTokens('master key of a test').issue(sessionId, createdAt)
  const second = await new SessionTokens('master key of a test').issue(sessionId, createdAt)

  assert.equal(first, second)
  assert.equal(first.split('.').length, 3)
})

test('returns the session and the lease of a token', async () => {
  const tokens = new SessionTokens('master key of a test')

  for (const leaseNumber of [0, 1, 2]) {
    const token = await tokens.issue(sessionId, createdAt, leaseNumber)
    assert.deepEqual(await tokens.verify(token), { sessionId, leaseNumber })
  }
})

test('rejects tokens of another key, damaged ones and ones without a signature', async () => {
  const tokens = new SessionTokens('master key of a test')
  const foreign = await new SessionTokens('another master key').issue(sessionId, createdAt)
  const own = await tokens.issue(sessionId, createdAt)
  const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${own.split('.')[1]}.`

  for (const token of [foreign, own.slice(0, -3), `${own}x`, unsigned, '', 'a.b.c']) {
    assert.equal(await tokens.verify(token), undefined)
  }
})

test('rejects a token that was signed for another purpose', async () => {
  const key = new TextEncoder().encode('master key of a test')
  const token = await new SignJWT()
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject(sessionId)
    .setAudience('session')
    .sign(key)

  assert.equal(await new SessionTokens('master key of a test').verify(token), undefined)
})

test('a token for viewing gives access only to the view without input', async () => {
  const tokens = new SessionTokens('master key of a test')
  const view = await tokens.issueForView(sessionId, createdAt, 2)
  const full = await tokens.issue(sessionId, createdAt, 2)

  assert.equal(await tokens.verify(view), undefined)
  assert.deepEqual(await tokens.verifyForView(view), { sessionId, leaseNumber: 2, isReadOnly: true })
  assert.deepEqual(await tokens.verifyForView(full), { sessionId, leaseNumber: 2, isReadOnly: false })
  assert.equal(await tokens.verifyForView(`${view}x`), undefined)
})
