import assert from 'node:assert/strict'
import { appendFile, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { newId, type OrganizationId } from '@berth/contract/common/ids.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { AuditJournal } from './audit-journal.ts'
import type { AuditEntry } from './audit-record.ts'

const root = await mkdtemp(join(tmpdir(), 'berth-journal-'))
after(() => rm(root, { recursive: true }))
const logger = createLogger({ name: 'test', level: 'silent', json: true })

function entry(path: string): AuditEntry {
  return {
    eventId: newId('audit-entry', new Date()),
    organizationId: 'org' as OrganizationId,
    occurredAt: new Date('2026-01-02T03:04:05.678Z'),
    service: 'api',
    authStrategy: 'api_key',
    userId: 'key',
    email: '',
    status: 200,
    method: 'POST',
    path,
    route: path,
    domain: '',
    durationMilliseconds: 1,
    clientIp: '',
    userAgent: '',
  }
}

async function read(journal: AuditJournal, { remove }: { remove: boolean }): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = []
  for await (const part of journal.parts()) {
    entries.push(...part.entries)
    if (remove) await part.remove()
  }
  return entries
}

test('entries stay available for the next reader and the next server until they are removed', async () => {
  const folder = join(root, 'kept')
  const journal = new AuditJournal(folder, logger)
  const entries = [entry('/a'), entry('/b\n"c"')]
  for (const one of entries) journal.append(one)

  assert.deepEqual(await read(journal, { remove: false }), entries)
  journal.append(entry('/later'))
  const next = new AuditJournal(folder, logger)
  assert.equal((await read(next, { remove: true })).length, 3)
  assert.deepEqual(await readdir(folder), [])
})

test('an entry that is added during a read is returned by the next one', async () => {
  const journal = new AuditJournal(join(root, 'meanwhile'), logger)
  journal.append(entry('/a'))

  const paths: string[] = []
  for await (const { entries, remove } of journal.parts()) {
    paths.push(...entries.map(({ path }) => path))
    journal.append(entry('/b'))
    await remove()
  }

  assert.deepEqual(paths, ['/a'])
  assert.deepEqual(
    (await read(journal, { remove: true })).map(({ path }) => path),
    ['/b'],
  )
})

test('an incomplete line at the end affects no other line', async () => {
  const folder = join(root, 'torn')
  const journal = new AuditJournal(folder, logger)
  journal.append(entry('/a'))
  const [name = ''] = await readdir(folder)
  await appendFile(join(folder, name), '{"eventId": "aud')

  assert.deepEqual(
    (await read(journal, { remove: true })).map(({ path }) => path),
    ['/a'],
  )
})

test('entries that cannot be written are kept, and written or read later', async () => {
  const folder = join(root, 'full')
  const journal = new AuditJournal(folder, logger)
  await rm(folder, { recursive: true })
  journal.append(entry('/held'))

  const parts = journal.parts()
  const held = await parts.next()
  assert.deepEqual(
    held.value?.entries.map(({ path }: AuditEntry) => path),
    ['/held'],
  )

  await mkdir(folder)
  journal.append(entry('/after'))
  assert.deepEqual(
    (await read(journal, { remove: true })).map(({ path }) => path),
    ['/held', '/after'],
  )
})
