import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Extraction } from './extracted.ts'
import { defaultExtractorLimits, Extractor } from './extractor.ts'

const extractor = new Extractor({ ...defaultExtractorLimits, milliseconds: 2_000, memoryMebibytes: 250 })
after(() => extractor.close())

const { signal } = new AbortController()
const url = 'https://site.test/page'
const read = (text: string | Buffer, contentType = 'text/html'): Promise<Extraction> =>
  extractor.extract({ bytes: Buffer.from(text), contentType, url }, signal)
const textOf = async (text: string | Buffer, contentType?: string) => {
  const extraction = await read(text, contentType)
  assert.equal(extraction.outcome, 'extracted', JSON.stringify(extraction))
  return extraction.outcome === 'extracted' ? extraction : assert.fail()
}
const sentence = 'A sentence that is long enough to be the text of an article. '.repeat(6)

/** Malicious pages. */
const hostile: readonly (readonly [what: string, make: () => string])[] = [
  ['is nested without end', () => `<html><body>${'<div>'.repeat(300_000)}`],
  ['has millions of elements', () => `<html><body>${'<p>a</p>'.repeat(900_000)}`],
  ['has an attribute of 7 MiB', () => `<html><body class="${'a -'.repeat(2_400_000)}">x`],
  ['never ends a comment', () => `<html><body><!--${'-'.repeat(7_000_000)}`],
]
for (const [what, make] of hostile) {
  test(`a page that ${what} ends at its time limit, and the next one is read`, async () => {
    const begin = performance.now()
    const { outcome } = await read(make())
    const milliseconds = performance.now() - begin

    assert.ok(['failed', 'extracted'].includes(outcome))
    assert.ok(milliseconds < 30_000, `${milliseconds} ms`)
    assert.equal((await textOf(`<html><body><p>${sentence}</p>`)).text, sentence.trim())
  })
}

test('a malformed PDF only fails itself', async () => {
  assert.equal((await read('%PDF-1.7 nothing', 'application/pdf')).outcome, 'failed')
  assert.equal((await read(Buffer.alloc(100_000, 7), 'application/pdf')).outcome, 'failed')
})

test('the extraction process can neither write files nor start programs', async () => {
  await read(`<html><body><p>${sentence}</p>`)
  const processes = extractionProcesses()
  assert.ok(processes.length > 0)
  for (const { command, environment } of processes) {
    assert.match(command, /--permission/)
    assert.doesNotMatch(command, /--allow-(fs-write|child-process|worker|addons)/)
    assert.doesNotMatch(environment, /KEY|TOKEN|PATH=/)
  }
})

test('reading ends when the caller disconnects, and close ends every process', async () => {
  const own = new Extractor({ ...defaultExtractorLimits, processes: 1 })
  const leave = new AbortController()
  const slow = own.extract(
    { bytes: Buffer.from(`<html><body>${'<div>'.repeat(300_000)}`), contentType: 'text/html', url },
    leave.signal,
  )
  const waiting = own.extract({ bytes: Buffer.from(sentence), contentType: 'text/plain', url }, signal)
  leave.abort()
  await assert.rejects(slow)
  assert.equal((await waiting).outcome, 'extracted')
  own.close()
  extractor.close()
  for (let rounds = 0; extractionProcesses().length > 0; rounds++) {
    assert.ok(rounds < 200, 'processes are left')
    await delay(25)
  }
})

test('Markdown has headings, lists, tables, code with its language, and whole addresses', async () => {
  const own = new Extractor()
  try {
    const html = `<html><head><title>Title | Site</title></head><body><main><h1>Title</h1><p>${sentence}<a href="/x">link</a></p>
      <ul><li>one</li></ul><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
      <pre><code class="language-js">a = \`1\`\nb()</code></pre><img src="i.png" alt="picture"><a href="javascript:x()">bad</a></main></body></html>`
    const extraction = await own.extract({ bytes: Buffer.from(html), contentType: 'text/html', url }, signal)
    const markdown = extraction.outcome === 'extracted' ? extraction.markdown : ''

    for (const part of [
      ...['# Title\n', '[link](https://site.test/x)', '-   one', '| a   | b   |\n| --- | --- |\n| 1   | 2   |'],
      ...['```js\na = `1`\nb()\n```', '![picture](https://site.test/i.png)'],
    ]) {
      assert.ok(markdown.includes(part), `${part}\n---\n${markdown}`)
    }
    assert.doesNotMatch(markdown, /javascript:/)
  } finally {
    own.close()
  }
})

/** The extraction processes that this process has started. */
function extractionProcesses() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        if (Number(parent) !== process.pid || !command.includes('extraction-process')) return []
        return [{ command, environment: readFileSync(`/proc/${pid}/environ`, 'utf8') }]
      } catch {
        return [] // It has exited.
      }
    })
}
