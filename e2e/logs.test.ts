import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Berth } from './testing/berth.ts'

const berth = await Berth.start()
const client = await berth.client()
after(() => berth[Symbol.asyncDispose]())
const { session_id: id } = await client.browsers.create({ headless: false, timeout_seconds: 300 })

/** The lines of a stream that ends by itself. */
async function linesOf(query: Parameters<typeof client.browsers.logs.stream>[1]): Promise<readonly string[]> {
  const lines: string[] = []
  for await (const { message } of await client.browsers.logs.stream(id, query)) lines.push(message)
  return lines
}

async function write(path: string, text: string): Promise<void> {
  await client.browsers.fs.writeFile(id, text, { path })
}

test('the history of a file comes line by line, without those that are empty', async () => {
  const long = 'ä'.repeat(100_000)
  await write('/tmp/a.log', `first\r\n\n  \n${long}\nlast without an end`)

  const lines = await linesOf({ source: 'path', path: '/tmp/a.log', follow: false })

  assert.deepEqual([lines[0], lines.slice(1, -1).join(''), lines.at(-1)], ['first', long, 'last without an end'])
})

test('a followed file tells what is written from now on, also after it was cut short or replaced', async () => {
  await write('/tmp/b.log', 'before\n')
  const stream = await client.browsers.logs.stream(id, { source: 'path', path: '/tmp/b.log' })
  const events = stream[Symbol.asyncIterator]()
  const next = async () => (await events.next()).value?.message
  const run = (script: string) => client.browsers.process.exec(id, { command: 'sh', args: ['-c', script] })

  const first = next()
  // The stream begins at the end of the file, whenever that is: so it is written to until something comes.
  let isThere = false
  void first.then(() => {
    isThere = true
  })
  while (!isThere) await run('echo appended >> /tmp/b.log; sleep 0.3')
  assert.equal(await first, 'appended')
  await run('echo short > /tmp/b.log')
  let line = await next()
  while (line === 'appended') line = await next()
  assert.equal(line, 'short')
  await run('echo other > /tmp/c.log; mv /tmp/c.log /tmp/b.log')
  assert.equal(await next(), 'other')
  stream.controller.abort()
})

test('what cannot be read is told in one line, and the stream ends', async () => {
  for (const path of ['/tmp/none.log', 'tmp/a.log', '/tmp', '/dev/zero']) {
    const lines = await linesOf({ source: 'path', path, follow: true })

    assert.equal(lines.length, 1, path)
    assert.match(lines[0] ?? '', /^failed to open log path: /)
  }
})

test('the programs of a session have a history', async () => {
  const lines = await linesOf({ source: 'supervisor', supervisor_process: 'chromium', follow: false })
  const display = await linesOf({ source: 'supervisor', supervisor_process: 'display', follow: false })

  assert.ok(
    lines.some((line) => line.startsWith('DevTools listening on ')),
    lines.join('\n'),
  )
  assert.ok(
    display.some((line) => line.includes('Xvnc')),
    display.join('\n'),
  )
})

test('a source without its name, and a name that is none, are refused by field', async () => {
  const answerTo = async (query: string) => {
    const answer = await berth.request(`/browsers/${id}/logs/stream?${query}`)
    return [answer.status, ((await answer.json()) as { message: string }).message] as const
  }

  for (const [query, field] of [
    ['source=path', 'path'],
    ['source=supervisor', 'supervisor_process'],
    ['source=supervisor&supervisor_process=neko', 'supervisor_process'],
    ['source=kernel', 'source'],
    ['source=path&path=/tmp/a.log&follow=perhaps', 'follow'],
  ] as const) {
    const [status, message] = await answerTo(query)

    assert.equal(status, 400, query)
    assert.ok(message.includes(field), message)
  }
})
