import { spawn } from 'node:child_process'
import { createServer, request } from 'node:http'

/*
 * The conformance suite of the protocol's authors. Most of its scenarios call tools, resources and prompts with fixed
 * names (test_simple_text), which only a server that is written for the suite has.
 */

const { BERTH_URL, BERTH_API_KEY } = process.env
const program = new URL('node_modules/.bin/conformance', import.meta.url).pathname

const fixed = 'needs a tool, resource or prompt of the suite by its name'
const notOffered = 'berth does not declare the capability'

/** Scenarios that do not apply, with the reason. All others must pass. */
const notApplicable = {
  'logging-set-level': notOffered,
  'resources-subscribe': notOffered,
  'resources-unsubscribe': notOffered,
  'tools-call-simple-text': fixed,
  'tools-call-image': fixed,
  'tools-call-audio': fixed,
  'tools-call-embedded-resource': fixed,
  'tools-call-mixed-content': fixed,
  'tools-call-with-logging': fixed,
  'tools-call-error': fixed,
  'tools-call-with-progress': fixed,
  'tools-call-sampling': fixed,
  'tools-call-elicitation': fixed,
  'json-schema-2020-12': fixed,
  'elicitation-sep1034-defaults': fixed,
  'elicitation-sep1330-enums': fixed,
  'resources-read-text': fixed,
  'resources-read-binary': fixed,
  'resources-templates-read': fixed,
  'prompts-get-simple': fixed,
  'prompts-get-with-args': fixed,
  'prompts-get-embedded-resource': fixed,
  'prompts-get-with-image': fixed,
}

async function run(...args) {
  const child = spawn(process.execPath, [program, ...args], { env: process.env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const code = await new Promise((resolve) => child.once('close', resolve))
  return { code, output }
}

// The suite sends no API key.
const proxy = createServer((incoming, outgoing) => {
  const headers = { ...incoming.headers, authorization: `Bearer ${BERTH_API_KEY}` }
  const { method, url: path } = incoming
  const asked = request(new URL(path, BERTH_URL), { method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers)
    answer.pipe(outgoing)
  })
  asked.on('error', () => outgoing.destroy())
  incoming.pipe(asked)
})
await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve))
const url = `http://localhost:${proxy.address().port}/mcp`

const { output: listed } = await run('list')
const [, servers = ''] = /^Server scenarios.*?:\n((?: +- .*\n)+)/m.exec(listed) ?? []
const scenarios = servers.match(/(?<=- )\S+/g) ?? []
const unknown = Object.keys(notApplicable).filter((name) => !scenarios.includes(name))
const applicable = scenarios.filter((name) => !(name in notApplicable))
let failed = unknown.length > 0 || applicable.length === 0
if (unknown.length > 0) process.stderr.write(`the suite has no scenarios ${unknown}\n`)

for (const name of applicable) {
  const { code, output } = await run('server', '--url', url, '--scenario', name)
  process.stderr.write(code === 0 ? `passed: ${name}\n` : `FAILED: ${name}\n${output}\n`)
  failed ||= code !== 0
}
proxy.close()
proxy.closeAllConnections()
process.exitCode = failed ? 1 : 0
