import assert from 'node:assert/strict'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { HostFiles, parseHosts, parseNameServers } from './host-files.ts'

test('reads a hosts file as the C library does', () => {
  const hosts = parseHosts(`
# 10.0.0.9 not.test
127.0.0.1\tlocalhost  Name.Test.   # comment
::1 localhost
10.0.0.1 name.test
10.0.0.1 name.test
10.0.0.2 _odd-name_ single
fe80::1%eth0 zoned.test
nonsense also.test
10.0.0.3`)

  assert.deepEqual(Object.fromEntries(hosts), {
    localhost: ['127.0.0.1', '::1'],
    'name.test': ['127.0.0.1', '10.0.0.1'],
    '_odd-name_': ['10.0.0.2'],
    single: ['10.0.0.2'],
  })
})

test('reads resolv.conf as the C library does', () => {
  assert.deepEqual(parseNameServers(''), { servers: ['127.0.0.1'], search: [], ndots: 1 })
  assert.deepEqual(
    parseNameServers(`
; comment
domain one.test
search two.test three.test.
nameserver 192.0.2.1
nameserver 2001:db8::1 # comment
nameserver 192.0.2.3
nameserver 192.0.2.4
options timeout:1 ndots:5 rotate`),
    { servers: ['192.0.2.1', '2001:db8::1', '192.0.2.3'], search: ['two.test', 'three.test'], ndots: 5 },
  )
  assert.deepEqual(parseNameServers('search two.test\ndomain one.test\noptions ndots:99').search, ['one.test'])
})

test('reads changed and replaced files again, and treats missing ones as empty', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'))
  const [hosts, nameServers] = [join(folder, 'hosts'), join(folder, 'resolv.conf')]
  let now = 0
  const files = new HostFiles({ now: () => new Date(now) }, { hosts, nameServers })
  const known = () => [...files.hosts().keys()]

  const missing = [known(), files.nameServers().servers]
  await writeFile(hosts, '10.0.0.1 one.test')
  now += 1_001
  const written = known()
  await writeFile(`${hosts}.new`, '10.0.0.1 two.test')
  await rename(`${hosts}.new`, hosts)
  const atOnce = known()
  now += 1_001
  const replaced = known()
  await rm(folder, { recursive: true })

  assert.deepEqual(missing, [[], ['127.0.0.1']])
  assert.deepEqual([written, atOnce, replaced], [['one.test'], ['one.test'], ['two.test']])
})
