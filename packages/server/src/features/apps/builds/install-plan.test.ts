import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planInstall } from './install-plan.ts'
import { registriesIn } from './registry-settings.ts'

const manifest = (content: object) => Buffer.from(JSON.stringify(content))
const lock = Buffer.from('{}')

test('what is installed for a lock file is the same for the same files alone', () => {
  const key = (content: object, npm = '11') =>
    planInstall({ 'package.json': manifest(content), 'package-lock.json': lock }, npm)?.key

  assert.equal(key({ name: 'a' }), key({ name: 'a' }))
  assert.notEqual(key({ name: 'a' }), key({ name: 'b' }))
  assert.notEqual(key({ name: 'a' }), key({ name: 'a' }, '12'))
})

test('nothing is kept for others without a lock file, or where scripts of the app itself run', () => {
  const scripts = { postinstall: 'node build.js' }

  assert.equal(planInstall({ 'package.json': manifest({}) }, '11')?.key, undefined)
  assert.equal(planInstall({ 'package.json': manifest({ scripts }), 'package-lock.json': lock }, '11')?.key, undefined)
  assert.equal(planInstall({}, '11'), undefined)
})

test('refuses what it cannot install by the name of the file', () => {
  assert.throws(
    () => planInstall({ 'package.json': manifest({}), 'pnpm-lock.yaml': lock }, '11'),
    /^Error: pnpm-lock.yaml: /,
  )
  assert.throws(() => planInstall({ 'package.json': Buffer.from('{') }, '11'), /^Error: package.json: /)
})

test('machines learn the addresses of registries, and no credentials', () => {
  assert.deepEqual(
    registriesIn({
      registry: 'http://user:secret@127.0.0.1:4873/',
      '@corp:registry': 'https://npm.corp.example/',
      '//npm.corp.example/:_authToken': '(protected)',
      cache: '/root/.npm',
    }),
    {
      npm_config_registry: 'http://host.berth.internal:4873/',
      'npm_config_@corp:registry': 'https://npm.corp.example/',
    },
  )
})
