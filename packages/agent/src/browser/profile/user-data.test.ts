import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { packProfile } from './profile-archive.ts'
import { UserData } from './user-data.ts'

const folder = mkdtempSync(join(tmpdir(), 'berth-user-data-'))
after(() => rmSync(folder, { recursive: true }))

async function profile(): Promise<Buffer> {
  const source = join(folder, 'source')
  mkdirSync(join(source, 'Default'), { recursive: true })
  writeFileSync(join(source, 'Default', 'Preferences'), '{"saved":true}')
  return buffer(packProfile(source))
}

test('a profile that arrives while a launch ahead of it is prepared is used, whichever is first', async () => {
  const archive = await profile()
  for (let milliseconds = 0; milliseconds < 12; milliseconds += 1) {
    const home = mkdtempSync(join(folder, 'home-'))
    const config = { home_folder: home, viewport: { width: 800, height: 600 } } as AgentConfig
    const userData = new UserData(home)
    await userData.unpack(Readable.from([archive], { objectMode: false }), config)
    const isAhead = userData.prepareAhead().then(
      () => true,
      () => false,
    )
    await delay(milliseconds)

    await userData.replace()
    // Like a launch, which releases the one ahead of it if there is one.
    await userData.prepare(config, 'restore')
    if (await isAhead) await userData.release()

    const preferences = JSON.parse(readFileSync(join(userData.folder, 'Default', 'Preferences'), 'utf8'))
    assert.equal(preferences.saved, true, `after ${milliseconds} ms`)
  }
})
