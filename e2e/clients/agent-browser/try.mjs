import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'

const { CDP_WS_URL, SITE } = process.env
const program = new URL('node_modules/.bin/agent-browser', import.meta.url).pathname
// This client drops the path and the query of an http address.
const run = (...args) => execFileSync(program, ['--cdp', CDP_WS_URL, ...args], { encoding: 'utf8', timeout: 60_000 })
run('open', SITE)
run('fill', '#q', 'sent')
run('click', '#send')
assert.match(run('get', 'title'), /sent/)
assert.match(run('snapshot'), /A form/)
run('close')
