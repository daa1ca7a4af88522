import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { ListName } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { navigation } from './navigation.ts'

const ofOtherPages: readonly ListName[] = ['vault-items', 'deliveries']

test('the menu leads to every list', () => {
  const paths = navigation.flatMap(({ entries }) => entries.map(({ to }) => to))
  const lists = ListName.options.filter((name) => !ofOtherPages.includes(name)).map((name) => `/${name}`)

  assert.deepEqual(new Set(paths), new Set(['/overview', '/sessions', ...lists]))
  assert.equal(paths.length, new Set(paths).size)
})

/** Each page is checked with axe, by the test of the menu or a test of its own. */
const seenBy: Readonly<Record<string, string>> = {
  '/': 'sign-in',
  '/sign-in': 'sign-in',
  '/sessions': 'sessions',
  '/sessions/$id': 'session',
  '/overview': 'overview',
  '/vaults/$vault': 'vault',
  '/webhooks/$webhook': 'deliveries',
  '/$resource': 'proxies',
  '/$': 'missing',
}

test('each route has a page that is checked with axe', async () => {
  const router = await readFile(new URL('router.tsx', import.meta.url), 'utf8')
  const e2e = new URL('../../../../e2e/', import.meta.url)
  const tests = await Promise.all(
    ['dashboard.test.ts', 'dashboard-resources.test.ts', 'dashboard-states.test.ts'].map((name) =>
      readFile(new URL(name, e2e), 'utf8'),
    ),
  )

  const paths = [...router.matchAll(/\bpath: '([^']+)'/g)].map(([, path]) => path ?? '')
  assert.deepEqual(new Set(paths), new Set(Object.keys(seenBy)))
  for (const name of Object.values(seenBy)) assert.ok(tests.join('').includes(`isAccessible(page, '${name}')`), name)
})
