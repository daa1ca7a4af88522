import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { startAgent } from '../testing/start-agent.ts'

const names = ['Résumé – 日本語.txt', 'отчёт 😀.txt', 'שלום.txt']

for (const [kind, changes] of Object.entries({
  headless: {},
  'stealthy headless': { stealth: true },
  headful: { headless: false },
} satisfies Record<string, Partial<AgentConfig>>)) {
  test(`a ${kind} browser preserves every file name, and its language`, async () => {
    await using agent = await startAgent(changes)
    await agent.becomesReady()
    const client = await agent.connect()
    const page = await client.newPage()
    const folder = join(agent.config.home_folder, 'Downloads')
    await client.send('Browser.setDownloadBehavior', {
      behavior: 'allow',
      downloadPath: folder,
      eventsEnabled: true,
    })

    for (const name of names) {
      const finished = client.nextEvent('Browser.downloadProgress', ({ state }) => state === 'completed')
      await client.evaluate(
        `(() => {
          const link = document.createElement('a')
          link.href = URL.createObjectURL(new Blob([${JSON.stringify(name)}]))
          link.download = ${JSON.stringify(name)}
          document.body.append(link)
          link.click()
        })()`,
        page,
      )
      await finished
    }
    assert.deepEqual(readdirSync(folder).sort(), names.toSorted())
    for (const name of names) assert.equal(readFileSync(join(folder, name), 'utf8'), name)

    await client.evaluate(`document.body.innerHTML = '<input type=file multiple>'`, page)
    const { root } = await client.send('DOM.getDocument', {}, page)
    const { nodeId } = await client.send('DOM.querySelector', { nodeId: root.nodeId, selector: 'input' }, page)
    const files = names.map((name) => join(folder, name))
    await client.send('DOM.setFileInputFiles', { nodeId, files }, page)
    const given = await client.evaluate(
      `Promise.all([...document.querySelector('input').files].map(async (file) => [file.name, await file.text()]))`,
      page,
    )

    assert.deepEqual(
      given,
      names.map((name) => [name, name]),
    )
    assert.deepEqual(await client.evaluate('[navigator.language, ...navigator.languages]', page), [
      'en-US',
      'en-US',
      'en',
    ])
    for (const program of ['chromium', 'Xtigervnc', 'openbox']) {
      for (const pid of agent.children(program)) {
        assert.match(readFileSync(`/proc/${pid}/environ`, 'utf8'), /(^|\0)LANG=C\.UTF-8\0/, program)
      }
    }
  })
}
