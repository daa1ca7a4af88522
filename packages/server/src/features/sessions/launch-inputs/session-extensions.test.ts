import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Extension } from '@berth/contract/extensions/extension.ts'
import { readMultipart } from '@berth/runtime/http/multipart.ts'
import { zip } from '@berth/runtime/testing/zip.ts'
import type { FakeAgent } from '../../../testing/fakes/fake-agent.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

let server: TestServer
before(async () => {
  server = await TestServer.open()
})
after(() => server.close())

const manifest = { manifest_version: 3, name: 'test', version: '1.0' }
const plain = zip({ name: 'manifest.json', content: JSON.stringify(manifest) })
const policyId = 'abcdefghijklmnopabcdefghijklmnop'
const policyMembers = [
  { name: 'manifest.json', content: JSON.stringify({ ...manifest, permissions: ['webRequestBlocking'] }) },
  { name: 'update.xml', content: `<app appid="${policyId}"><updatecheck version="1.0"/></app>` },
  { name: 'it.crx', content: Buffer.concat([Buffer.from('Cr24'), Buffer.of(3, 0, 0, 0, 4, 0, 0, 0), Buffer.alloc(4)]) },
]
const forced = [`${policyId};http://127.0.0.1:10001/extensions/${policyId}/update.xml`]

const blobOf = (bytes: Uint8Array) => new Blob([new Uint8Array(bytes)])

async function post(project: TestProject, path: string, form: FormData) {
  const headers = { authorization: `Bearer ${project.key}` }
  const response = await fetch(`${server.url}${path}`, { method: 'POST', headers, body: form })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

async function store(project: TestProject, bytes: Uint8Array, name: string): Promise<Extension> {
  const form = new FormData()
  form.set('file', blobOf(bytes))
  form.set('name', name)
  return (await post(project, '/extensions', form)).body
}

function loading(extensions: Readonly<Record<string, Uint8Array>>): FormData {
  const form = new FormData()
  for (const [index, [name, bytes]] of Object.entries(extensions).entries()) {
    form.set(`extensions[${index}][zip_file]`, blobOf(bytes))
    form.set(`extensions[${index}][name]`, name)
  }
  return form
}

/** Records what the agent receives, and sends this response. */
function listen(agent: FakeAgent, answer: { status: number; body?: object } = { status: 201 }): Map<string, Buffer> {
  const received = new Map<string, Buffer>()
  agent.takeExtensions = async (request, response) => {
    const isFile = (path: readonly string[]) => path.at(-1) === 'zip_file'
    const limits = { maxParts: 40, maxFileBytes: 1e9 }
    let name = ''
    for await (const part of readMultipart(request, {
      headers: request.headers,
      isKnown: () => true,
      isFile,
      ...limits,
    })) {
      if (part.kind === 'text') name = part.text
      else received.set(name, await buffer(part.content))
    }
    response.writeHead(answer.status).end(answer.body && JSON.stringify(answer.body))
  }
  return received
}

const agentOf = (session: { session_id: string }) => server.host.agentOf(session.session_id as SessionId)

test('a session starts with the requested extensions, and with the policies that they need', async () => {
  const project = await server.project()
  const stored = await store(project, plain, 'stored')
  const unnamed = (await post(project, '/extensions', loadingOne(policyZip()))).body as Extension
  server.clock.advance(60)

  const session = await project.session({ headless: true, extensions: [{ id: stored.id }, { id: unnamed.id }] })

  const spec = server.host.specOf(session.session_id as SessionId)
  assert.equal(spec.awaitsExtensions, true)
  assert.deepEqual(spec.chromePolicy, { ExtensionInstallForcelist: forced })
  const { body } = await project.call<Extension>('GET', `/extensions/stored/metadata`)
  assert.equal(body.last_used_at, server.clock.now().toISOString())
})

function policyZip(): Buffer {
  return zip(...policyMembers)
}

function loadingOne(bytes: Uint8Array): FormData {
  const form = new FormData()
  form.set('file', blobOf(bytes))
  return form
}

for (const [what, extensions, status] of [
  ['neither id nor name', [{}], 400],
  ['id and name', [{ id: 'a', name: 'b' }], 400],
  ['an unknown one', [{ name: 'unknown' }], 404],
  ['one twice', [{ name: 'known' }, { name: 'known' }], 400],
  ['more than twenty', Array.from({ length: 21 }, () => ({ name: 'known' })), 400],
  ['something else', 'known', 400],
] as const) {
  test(`no session starts with ${what}`, async () => {
    const project = await server.project()
    await store(project, plain, 'known')
    const before = await server.host.remains()

    const answer = await project.call('POST', '/browsers', { headless: true, extensions })

    assert.equal(answer.status, status)
    assert.deepEqual(await server.host.remains(), before)
  })
}

test('a session starts without extensions if they are null or empty', async () => {
  const project = await server.project()

  for (const extensions of [null, []]) {
    const session = await project.session({ headless: true, extensions })
    assert.equal(server.host.specOf(session.session_id as SessionId).awaitsExtensions, false)
  }
})

test('loads uploads into the running browser under their names', async () => {
  const project = await server.project()
  const session = await project.session({ headless: true, name: 'running' })
  const received = listen(agentOf(session))

  const { status, body } = await post(project, '/browsers/running/extensions', loading({ one: plain, two: plain }))

  assert.deepEqual([status, body], [201, undefined])
  assert.deepEqual(
    [...received],
    [
      ['one', plain],
      ['two', plain],
    ],
  )
  assert.equal(server.host.policies.has(server.host.specOf(session.session_id as SessionId).id), false)
})

test('sets policies before the agent loads, and reverts them when it fails', async () => {
  const project = await server.project()
  const session = await project.session({ headless: true, chrome_policy: { HomepageLocation: 'http://home.test/' } })
  const policies = () => server.host.policies.get(server.host.specOf(session.session_id as SessionId).id)
  const path = `/browsers/${session.session_id}/extensions`
  const refusal = { code: 'extension_not_loadable', message: 'The extension p cannot be loaded: no' }
  listen(agentOf(session), { status: 400, body: refusal })

  const refused = await post(project, path, loading({ p: policyZip() }))
  assert.deepEqual([refused.status, refused.body.message], [400, 'The extension p cannot be loaded: no'])
  assert.deepEqual(policies(), { HomepageLocation: 'http://home.test/', ExtensionInstallForcelist: [] })

  listen(agentOf(session))
  assert.equal((await post(project, path, loading({ p: policyZip() }))).status, 201)
  assert.deepEqual(policies(), { HomepageLocation: 'http://home.test/', ExtensionInstallForcelist: forced })
})

for (const [what, form, reason] of [
  ['nothing', new FormData(), /broken|must have at least 1/],
  ['a file without a name', only({ 'extensions[0][zip_file]': blobOf(plain) }), /extensions\[0\]: its name is missing/],
  ['a name without a file', only({ 'extensions[0][name]': 'x' }), /extensions\[0\]: its zip_file is missing/],
  ['a name that is none', loading({ '../x': plain }), /extensions\[0\]\.name: must have/],
  ['a name that is a folder', loading({ '..': plain }), /extensions\[0\]\.name: must have/],
  ['an archive without a manifest', loading({ x: zip({ name: 'a' }) }), /no manifest\.json/],
  ['a policy without its files', loading({ x: zip(policyMembers[0] as never) }), /update\.xml and a \.crx/],
  [
    'a policy without an id',
    loading({
      x: zip(
        { ...policyMembers[0], name: 'manifest.json' } as never,
        { name: 'update.xml', content: '<app/>' },
        policyMembers[2] as never,
      ),
    }),
    /appid/,
  ],
  [
    'a policy whose extension is none',
    loading({ x: zip(policyMembers[0] as never, policyMembers[1] as never, { name: 'it.crx', content: 'x' }) }),
    /not a packed extension/,
  ],
] as [string, FormData, RegExp][]) {
  test(`refuses to load ${what}`, async () => {
    const project = await server.project()
    const session = await project.session()
    const received = listen(agentOf(session))

    const { status, body } = await post(project, `/browsers/${session.session_id}/extensions`, form)

    assert.equal(status, 400)
    assert.match(body.message, reason)
    assert.equal(received.size, 0)
  })
}

function only(parts: Readonly<Record<string, string | Blob>>): FormData {
  const form = new FormData()
  for (const [name, part] of Object.entries(parts)) form.set(name, part)
  return form
}

test('two with one name in one request are rejected', async () => {
  const project = await server.project()
  const session = await project.session()
  const form = loading({ same: plain, other: plain })
  form.set('extensions[1][name]', 'same')

  const { status, body } = await post(project, `/browsers/${session.session_id}/extensions`, form)

  assert.deepEqual([status, body.message], [400, 'extensions[1].name: same must be given once.'])
})

test('extensions are not loaded into an unknown or foreign session', async () => {
  const [owner, other] = [await server.project(), await server.project()]
  const session = await owner.session()

  assert.equal((await post(other, `/browsers/${session.session_id}/extensions`, loading({ x: plain }))).status, 404)
  assert.equal((await post(owner, '/browsers/unknown/extensions', loading({ x: plain }))).status, 404)
})

test('a malformed response or an agent that disconnects is not a 500', async () => {
  const project = await server.project()
  const session = await project.session()
  const path = `/browsers/${session.session_id}/extensions`

  listen(agentOf(session), { status: 500 })
  const odd = await post(project, path, loading({ x: plain }))
  agentOf(session).takeExtensions = (request) => request.socket.destroy()
  const gone = await post(project, path, loading({ x: plain }))

  assert.deepEqual([odd.status, odd.body.code], [502, 'operation_interrupted'])
  assert.deepEqual([gone.status, gone.body.code], [502, 'operation_interrupted'])
})
