import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { createSnippets } from './snippets.ts'

const run = promisify(execFile)
const request = {
  name: `it's "quoted" \\ and \n more`,
  headless: true,
  timeout_seconds: 600,
  tags: { 'a-b': "x': y", empty: '' },
  extensions: [{ id: 'one' }],
  viewport: { width: 1, height: 2 },
}

test('the TypeScript snippet matches the form', async () => {
  const text = createSnippets.TypeScript(request, 'http://127.0.0.1:1')
  const argument = text.slice(text.indexOf('create(') + 'create'.length)

  const { stdout } = await run(process.execPath, ['-e', `console.log(JSON.stringify(${argument}))`])

  assert.deepEqual(JSON.parse(stdout), request)
  assert.match(text, /baseURL: 'http:\/\/127\.0\.0\.1:1'/)
})

test('the Python snippet matches the form', async () => {
  const text = createSnippets.Python(request, 'http://127.0.0.1:1')
  const call = text.slice(text.indexOf('create(') + 'create'.length)

  const python = run('python3', ['-'])
  python.child.stdin?.end(`import json\nprint(json.dumps(dict${call}))`)
  const { stdout } = await python

  assert.deepEqual(JSON.parse(stdout), request)
})

test('an empty form results in a call without arguments', () => {
  assert.match(createSnippets.TypeScript({}, 'http://berth.test'), /create\(\{\}\)$/)
  assert.match(createSnippets.Python({}, 'http://berth.test'), /create\(\)$/)
})
