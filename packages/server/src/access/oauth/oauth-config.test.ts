import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@berth/contract/common/ids.ts'
import { readConfig } from '../../config.ts'

const organization = newId('organization', new Date())
const issuer = { BERTH_OAUTH_ISSUER: 'https://login.test/berth' }
const publicUrl = { BERTH_PUBLIC_URL: 'https://berth.test' }
const complete = { ...issuer, ...publicUrl, BERTH_OAUTH_ORGANIZATION: organization }

test('is disabled without an issuer', () => {
  assert.equal(readConfig({}, publicUrl).oauth, undefined)
})

test('uses the address of /mcp as audience by default, and no project claim', () => {
  assert.deepEqual(readConfig({}, complete).oauth, {
    issuer: 'https://login.test/berth',
    audience: 'https://berth.test/mcp',
    organization: { id: organization },
    projectClaim: undefined,
  })
})

test('reads the claims, and an audience instead of the public address', () => {
  const claims = { BERTH_OAUTH_ORGANIZATION_CLAIM: 'https://c.test/org', BERTH_OAUTH_PROJECT_CLAIM: 'project' }

  const { oauth } = readConfig({}, { ...issuer, ...claims, BERTH_OAUTH_AUDIENCE: 'berth' })

  assert.deepEqual(oauth, {
    issuer: 'https://login.test/berth',
    audience: 'berth',
    organization: { claim: 'https://c.test/org' },
    projectClaim: 'project',
  })
})

const address = /^BERTH_OAUTH_ISSUER must be an http or https address without query or credentials$/
const oneOrganization = /^BERTH_OAUTH_ISSUER needs BERTH_OAUTH_ORGANIZATION or BERTH_OAUTH_ORGANIZATION_CLAIM$/
const refused: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
  ...['AUDIENCE', 'ORGANIZATION', 'ORGANIZATION_CLAIM', 'PROJECT_CLAIM'].map((name) => {
    const variable = `BERTH_OAUTH_${name}`
    const message = new RegExp(`^${variable} has no effect without BERTH_OAUTH_ISSUER$`)
    return [`${variable} alone`, { [variable]: organization }, message] as const
  }),
  ['no audience', { ...issuer, BERTH_OAUTH_ORGANIZATION: organization }, /BERTH_PUBLIC_URL or BERTH_OAUTH_AUDIENCE/],
  ['no organization', { ...issuer, ...publicUrl }, oneOrganization],
  ['two organizations', { ...complete, BERTH_OAUTH_ORGANIZATION_CLAIM: 'org' }, oneOrganization],
  [
    'a name as organization',
    { ...complete, BERTH_OAUTH_ORGANIZATION: 'Acme' },
    /must be the id .* see berth org list$/,
  ],
  ['a word as issuer', { ...complete, BERTH_OAUTH_ISSUER: 'login' }, address],
  ['another protocol', { ...complete, BERTH_OAUTH_ISSUER: 'ftp://login.test' }, address],
  ['an issuer with a query', { ...complete, BERTH_OAUTH_ISSUER: 'https://login.test/?tenant=a' }, address],
  ['an issuer with a fragment', { ...complete, BERTH_OAUTH_ISSUER: 'https://login.test/#a' }, address],
  ['an issuer with a user', { ...complete, BERTH_OAUTH_ISSUER: 'https://user@login.test' }, address],
  ['an issuer with a password', { ...complete, BERTH_OAUTH_ISSUER: 'https://:secret@login.test' }, address],
]
for (const [what, environment, message] of refused) {
  test(`berth does not start with ${what}`, () => {
    assert.throws(() => readConfig({}, environment), { name: 'StartError', exitCode: 64, message })
  })
}
