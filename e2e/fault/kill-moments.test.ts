import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { deepOnly, isDeep } from './testing/deep.ts'
import { FaultTestbed } from './testing/fault-testbed.ts'
import type { Holdings } from './testing/holdings.ts'
import { call, canBeUsed, createSession, deleteSession, isActive } from './testing/sessions.ts'

/*
 * Kills the server as soon as a step of a create or a delete is visible from outside: in the database, on disk, or in
 * the kernel. The next start must leave either a working session or nothing.
 */
const testbed = await FaultTestbed.open()
after(() => testbed[Symbol.asyncDispose]())
let berth = await testbed.start()
const before: Holdings = await testbed.view.holdings()
const { dataFolder, runtimeFolder } = testbed.view
const machineFolder = () => firstIn(join(dataFolder, 'machines'))
const socketFolder = () => firstIn(join(runtimeFolder, 'm'))
const isThere = (folder: string | undefined, ...path: string[]) =>
  folder !== undefined && existsSync(join(folder, ...path))

/** In the order in which they occur. */
const momentsOfCreate: readonly Moment[] = [
  // On a busy machine it may be active before it was seen to start.
  { name: 'its row is there', isReached: async () => (await hasRow('starting')) || hasRow('active') },
  { name: 'its runtime folder is there', isReached: () => socketFolder() !== undefined },
  { name: 'its folder is there', isReached: () => machineFolder() !== undefined },
  { name: 'its agent’s socket has its name', isReached: () => isThere(socketFolder(), 'agent.sock') },
  {
    name: 'bubblewrap has told the number of its first process',
    isReached: () => isWritten(machineFolder(), 'sandbox.json'),
  },
  { name: 'egress serves it', isReached: () => isThere(socketFolder(), 'egress', 'egress.sock') },
  {
    name: 'Chromium makes its profile',
    isReached: () => isThere(machineRoot(), 'home', 'kernel', '.config', 'chromium', 'Local State'),
  },
  { name: 'its row is active', isReached: () => hasRow('active') },
]
const momentsOfDelete: readonly Moment[] = [
  { name: 'its row is ending', isReached: () => hasRow('ending') },
  { name: 'its control groups are gone', isReached: async () => (await testbed.view.controlGroups()).length === 0 },
  { name: 'its folder is gone', isReached: () => machineFolder() === undefined },
  { name: 'its runtime folder is gone', isReached: () => socketFolder() === undefined },
]
/** The short form omits moments between steps of the driver, whose own tests kill a server before each. */
const inShortForm = new Set([2, 6])
const chosen = (moments: readonly Moment[]) => moments.filter((_moment, index) => isDeep || inShortForm.has(index))

interface Moment {
  readonly name: string
  readonly isReached: () => Promise<boolean> | boolean
}

for (const moment of chosen(momentsOfCreate)) {
  test(`a server that is killed during a create when ${moment.name} leaves nothing behind`, async () => {
    const creation = call(berth, 'POST', '/browsers', { headless: true, name: 'moment' }).catch(() => undefined)
    await killAt(moment)
    await creation

    await checkNextServer(moment.name)
  })
}

for (const moment of chosen(momentsOfDelete)) {
  test(`a server that is killed during a delete when ${moment.name} leaves nothing behind`, async () => {
    for (;;) {
      const { session_id } = await createSession(berth, { name: 'moment' })
      const deletion = call(berth, 'DELETE', `/browsers/${session_id}`).catch(() => undefined)
      // On a busy machine the moment may have passed between two checks.
      if (!(await killAt(moment, deletion))) continue
      const answer = await deletion

      await checkNextServer(moment.name)
      if (answer?.status === 204) assert.equal(await isActive(berth, session_id), false)
      return
    }
  })
}

test(
  'a server that is killed at any time after the begin of a create or a delete leaves nothing behind',
  deepOnly,
  async () => {
    const kills = 25
    for (let index = 0; index < kills; index++) {
      const milliseconds = Math.round((1200 * (index + 0.5)) / kills)
      const creation = call(berth, 'POST', '/browsers', { headless: true, name: 'moment' }).catch(() => undefined)
      await delay(milliseconds)
      await berth.signal('SIGKILL')
      await creation
      await checkNextServer(`${milliseconds} ms after the begin of a create`)

      const { session_id } = await createSession(berth, { name: 'moment' })
      const deletion = call(berth, 'DELETE', `/browsers/${session_id}`).catch(() => undefined)
      await delay(milliseconds / 6)
      await berth.signal('SIGKILL')
      await deletion
      await checkNextServer(`${milliseconds / 6} ms after the begin of a delete`)
    }
  },
)

/** Whether the moment was seen before the work was done. */
async function killAt({ name, isReached }: Moment, work?: Promise<unknown>): Promise<boolean> {
  const deadline = performance.now() + 60_000
  let isDone = false
  void work?.then(() => {
    isDone = true
  })
  while (!(await isReached())) {
    if (isDone && !(await isReached())) return false
    assert.ok(performance.now() < deadline, `the moment has come: ${name}`)
    // No shorter: who looks all the time takes the processor from what it waits for.
    await delay(1)
  }
  await berth.signal('SIGKILL')
  return true
}

/** Asserts that either a working session or nothing remains. Then its name is free and everything is as before. */
async function checkNextServer(moment: string): Promise<void> {
  berth = await testbed.start()
  assert.deepEqual(
    (await statesOfRows()).filter((state) => state === 'starting' || state === 'ending'),
    [],
    `no half-made row: ${moment}`,
  )
  const { body: sessions } = await call<{ session_id: string; cdp_ws_url: string }[]>(berth, 'GET', '/browsers')
  for (const session of sessions) {
    assert.ok(await canBeUsed(session), `what is listed works: ${moment}`)
    assert.equal(await deleteSession(berth, session.session_id), 204)
  }
  assert.deepEqual(await testbed.view.findLeft(before, 20), [], moment)
  assert.deepEqual(await readdir(join(dataFolder, 'machines')), [])
}

async function hasRow(state: string): Promise<boolean> {
  return (await statesOfRows()).includes(state)
}

/** Reads the database, because the API does not show sessions that are starting. */
async function statesOfRows(): Promise<readonly string[]> {
  const password = readFileSync(join(dataFolder, 'postgres-password'), 'utf8')
  const client = new pg.Client({ host: join(runtimeFolder, 'postgres'), user: 'berth', password, database: 'postgres' })
  client.on('error', () => {})
  await client.connect()
  const { rows } = await client.query("select state from sessions where state <> 'deleted'")
  await client.end()
  return rows.map(({ state }) => state)
}

function firstIn(folder: string): string | undefined {
  const name = readdirSync(folder).find((candidate) => !candidate.startsWith('.'))
  return name === undefined ? undefined : join(folder, name)
}

/** The machine's view of the disk: its own part may be mounted only there. */
function machineRoot(): string | undefined {
  const folder = machineFolder()
  if (!isWritten(folder, 'sandbox.json')) return undefined
  const pid = /"child-pid":\s*(\d+)/.exec(readFileSync(join(folder ?? '', 'sandbox.json'), 'utf8'))?.[1]
  return pid && `/proc/${pid}/root`
}

function isWritten(folder: string | undefined, file: string): boolean {
  return folder !== undefined && existsSync(join(folder, file)) && readFileSync(join(folder, file)).length > 0
}
