import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AllowedHosts } from './allowed-hosts.ts'

test('a root allows itself and its subdomains, and no similar names', () => {
  const allowed = new AllowedHosts(['www.shop.test', '*.idp.test', 'bücher.test'])

  for (const url of [
    'https://shop.test',
    'https://a.b.shop.test/x',
    'http://login.idp.test:8080/',
    'https://xn--bcher-kva.test',
  ]) {
    assert.equal(allowed.outside(url), undefined, url)
  }
  for (const url of [
    'https://notshop.test',
    'https://shop.test.evil.test',
    'null',
    'about:blank',
    'data:text/html,x',
    'https://test',
  ]) {
    assert.notEqual(allowed.outside(url), undefined, url)
  }
})

test('an empty root allows nothing', () => {
  const allowed = new AllowedHosts(['', '*.', ' '])

  assert.notEqual(allowed.outside('https://shop.test'), undefined)
})
