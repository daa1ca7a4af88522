import assert from 'node:assert/strict'
import { appendFile, mkdir, rename, truncate, writeFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { eventDataOf } from '@berth/runtime/http/event-stream.ts'
import { ServedApp } from '../testing/served-app.ts'
import { ServiceLogs } from './service-logs.ts'

const app = await ServedApp.start()
after(() => app[Symbol.asyncDispose]())

/** The messages of a stream, as they arrive. */
async function* messages(query: Readonly<Record<string, string>>): AsyncGenerator<string> {
  const response = await app.call('GET', `/logs/stream?${new URLSearchParams(query)}`)
  assert.equal(response.status, 200)
  let unfinished = ''
  for await (const chunk of (response.body as ReadableStream).pipeThrough(new TextDecoderStream())) {
    const lines = `${unfinished}${chunk}`.split('\n')
    unfinished = lines.pop() ?? ''
    for (const data of lines.map(eventDataOf)) {
      if (data === undefined) continue
      const { event, message, timestamp } = JSON.parse(data)
      assert.equal(event, 'log')
      assert.ok(Date.parse(timestamp) > 0)
      yield message
    }
  }
}

const history = (path: string) => Array.fromAsync(messages({ source: 'path', path, follow: 'false' }))

test('the history of a file is sent line by line, without empty lines, and with long lines split', async () => {
  const path = `${await app.newFolder()}/a.log`
  const long = 'ä'.repeat(200_000)
  await writeFile(path, `first\r\n\n  \n${long}\nlast without an end`)

  const lines = await history(path)

  assert.deepEqual([lines[0], lines.slice(1, -1).join(''), lines.at(-1)], ['first', long, 'last without an end'])
  assert.ok(lines.every((line) => line.length < 150_000))
})

test('following a file sends new lines, also after it was truncated or replaced', async () => {
  const path = `${await app.newFolder()}/b.log`
  await writeFile(path, 'before\n')
  const lines = messages({ source: 'path', path })
  let isThere = false
  const first = lines.next().finally(() => {
    isThere = true
  })

  // The stream starts at the end of the file when it opens, so lines are written until one arrives.
  while (!isThere) {
    await appendFile(path, 'appended\n')
    await delay(20)
  }
  assert.equal((await first).value, 'appended')
  await truncate(path)
  await appendFile(path, 'short\n')
  const afterAppended = async () => {
    for (;;) {
      const { value } = await lines.next()
      if (value !== 'appended') return value
    }
  }
  assert.equal(await afterAppended(), 'short')
  await writeFile(`${path}.new`, 'other\n')
  await rename(`${path}.new`, path)
  assert.equal((await lines.next()).value, 'other')
  await lines.return(undefined)
})

test('an unreadable file is reported in one line, and the stream ends', async () => {
  const folder = await app.newFolder()
  await mkdir(`${folder}/folder`)

  for (const path of [`${folder}/none`, 'a.log', `${folder}/folder`, '/dev/zero']) {
    const lines = await Array.fromAsync(messages({ source: 'path', path }))

    assert.equal(lines.length, 1, path)
    assert.match(lines[0] ?? '', /^failed to open log path: /)
  }
})

test('a missing or unknown name of a source is rejected by field', async () => {
  for (const [query, field] of [
    ['source=path', 'path'],
    ['source=supervisor', 'supervisor_process'],
    ['source=supervisor&supervisor_process=neko', 'supervisor_process'],
    ['source=kernel', 'source'],
    ['source=path&path=/a&follow=perhaps', 'follow'],
    [`source=path&path=/${'a'.repeat(5000)}`, 'path'],
  ] as const) {
    const answer = await app.call('GET', `/logs/stream?${query}`)
    const { message } = (await answer.json()) as { message: string }

    assert.equal(answer.status, 400, query)
    assert.ok(message.includes(field), message)
  }
})

test('the last lines of a program are kept, and a slow reader is told how many it has missed', async () => {
  const logs = new ServiceLogs({ now: () => new Date() })
  const leaving = new AbortController()
  const reader = logs.follow('chromium', leaving.signal)
  const first = reader.next()

  for (let number = 1; number <= 1_500; number++) logs.append('chromium', `line ${number}`)

  assert.equal(logs.history('chromium').length, 1_000)
  assert.deepEqual(logs.history('display'), [])
  assert.match((await first).value?.message ?? '', /^500 lines were lost/)
  assert.equal((await reader.next()).value?.message, 'line 501')
  leaving.abort()
})
