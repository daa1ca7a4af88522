import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { newApiKey } from '../access/secrets.ts'
import { TestServer } from '../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())
const project = await server.project()
const stranger = await server.project()
const session = await project.session()
const other = await project.session()
const id = session.session_id
const token = new URL(session.cdp_ws_url).searchParams.get('jwt') ?? ''
const otherToken = new URL(other.cdp_ws_url).searchParams.get('jwt') ?? ''
const keyOfProject = newApiKey()
await project.addKey(keyOfProject, project.id)

const roots = [`/s/${id}`, `/s/${id}/cdp`, '']
const bearer = (value: string) => ({ authorization: `Bearer ${value}` })
type Form = readonly [what: string, path: string, headers: Record<string, string>]

const admitted: readonly Form[] = roots.flatMap((root) => [
  [`the token in the query`, `${root}/json/version?jwt=${token}`, {}],
  [`a slash at the end`, `${root}/json/version/?jwt=${token}`, {}],
  [`the token before other parameters`, `${root}/json/version?jwt=${token}&t=1`, {}],
  [`the token's name encoded`, `${root}/json/version?%6Awt=${token}`, {}],
  [`the form of Playwright up to 1.52`, `${root}?jwt=${token}/json/version/`, {}],
  [`that form without its last slash`, `${root}/?jwt=${token}/json/version`, {}],
  [`the token in the header`, `${root}/json/version`, bearer(token)],
  ...(root === ''
    ? []
    : [
        ['an API key of the organization', `${root}/json/version`, bearer(project.key)] as const,
        ['an API key of the project', `${root}/json/version/`, bearer(keyOfProject)] as const,
      ]),
])
for (const [what, path, headers] of admitted) {
  test(`discovery accepts ${what} at ${path.replaceAll(token, '…').replaceAll(id, '{session}')}`, async () => {
    const response = await fetch(`${server.url}${path}`, { headers })

    assert.equal(response.status, 200)
    const { webSocketDebuggerUrl } = (await response.json()) as { webSocketDebuggerUrl: string }
    assert.match(await handshake(webSocketDebuggerUrl.replace(/^ws:\/\/[^/]+/, '')), /^HTTP\/1\.1 101 /)
  })
}

const refused: readonly (readonly [...Form, status: number, message: RegExp])[] = [
  ['no token', `/s/${id}/json/version`, {}, 401, /\?jwt=.*Authorization: Bearer/],
  ['an empty token', `/s/${id}/json/version?jwt=`, {}, 401, /\?jwt=.*Authorization: Bearer/],
  ['no token at the top', '/json/version', {}, 401, /\?jwt=.*Authorization: Bearer/],
  ['another session’s token', `/s/${id}/json/version?jwt=${otherToken}`, {}, 401, /jwt: .*this session/],
  ['another session’s token in the header', `/s/${id}/json/version`, bearer(otherToken), 401, /authorization: /],
  ['a wrong key', `/s/${id}/json/version`, bearer('sk_wrong'), 401, /API key is not valid/],
  ['a key and no session', '/json/version', bearer(project.key), 401, /\/s\/\{session_id\}/],
  ['a stranger’s key', `/s/${id}/json/version`, bearer(stranger.key), 404, /no active session/],
  ['a wrong token before a right header', `/s/${id}/json/version?jwt=x`, bearer(token), 401, /jwt: /],
  ['a NUL character', `/s/${id}%00/json/version`, bearer(project.key), 400, /NUL/],
]
for (const [what, path, headers, status, message] of refused) {
  test(`discovery with ${what} is ${status} with a reason`, async () => {
    const response = await fetch(`${server.url}${path}`, { headers })

    assert.equal(response.status, status)
    assert.match(((await response.json()) as { message: string }).message, message)
  })
}

for (const root of roots) {
  test(`the protocol is public at ${root.replace(id, '{session}')}/json/protocol`, async () => {
    const response = await fetch(`${server.url}${root}/json/protocol`)

    assert.equal(response.status, 200)
    const { version, domains } = (await response.json()) as { version: object; domains: { domain: string }[] }
    assert.deepEqual(Object.keys(version), ['major', 'minor'])
    for (const name of ['Page', 'Runtime', 'Target']) assert.ok(domains.some(({ domain }) => domain === name))
  })
}

const websockets: readonly (readonly [what: string, path: string, headers: readonly string[], status: number])[] = [
  ['the token in the query', `/s/${id}/cdp?jwt=${token}`, [], 101],
  ['a slash at the end', `/s/${id}/cdp/?jwt=${token}`, [], 101],
  ['the token in the header', `/s/${id}/cdp`, [`authorization: Bearer ${token}`], 101],
  ['an API key', `/s/${id}/webdriver`, [`authorization: Bearer ${project.key}`], 101],
  ['the key "nil", as rod sends it', `/s/${id}/cdp?jwt=${token}`, ['sec-websocket-key: nil'], 101],
  ['the key "nil" for WebDriver', `/s/${id}/webdriver?jwt=${token}`, ['sec-websocket-key: nil'], 101],
  ['no key', `/s/${id}/cdp?jwt=${token}`, ['sec-websocket-key: '], 400],
  ['no token', `/s/${id}/cdp`, [], 401],
  ['a stranger’s API key', `/s/${id}/cdp`, [`authorization: Bearer ${stranger.key}`], 404],
  ['another path', `/s/${id}/other?jwt=${token}`, [], 404],
]
for (const [what, path, headers, status] of websockets) {
  test(`a WebSocket with ${what} is rejected with ${status}`, async () => {
    const answer = await handshake(path, headers)

    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `))
    if (headers[0]?.endsWith('nil')) assert.match(answer, /sec-websocket-accept: Q67D9eATKx531lK8F7u2rqQNnNI=\r\n/)
  })
}

const unknownPaths: readonly (readonly [path: string, headers: Record<string, string>, status: number])[] = [
  [`/s/${id}/nothing?jwt=${token}`, {}, 404],
  [`/s/${id}/browsers?jwt=${token}`, {}, 404],
  [`/s/${id}?jwt=${token}`, {}, 404],
  [`/s/${id}/cdp?jwt=${token}`, {}, 404],
  [`/s/${id}/nothing`, bearer(token), 404],
  [`/s/${id}/nothing`, bearer(project.key), 404],
  [`/s/${id}/nothing`, bearer(stranger.key), 404],
  [`/s/${id}/nothing`, {}, 401],
  [`/s/${id}/nothing?jwt=${otherToken}`, {}, 401],
  [`/nothing?jwt=${token}`, {}, 401],
  ['/nothing', bearer(project.key), 404],
]
for (const [path, headers, status] of unknownPaths) {
  const shown = Object.values(headers)[0] ? ' with a header' : ''
  test(`the unknown path ${path.replaceAll(/=.*/g, '=…').replaceAll(id, '{session}')}${shown} is ${status}`, async () => {
    assert.equal((await fetch(`${server.url}${path}`, { headers })).status, status)
  })
}

const spellings = ['jwt=T', '&jwt=T', '%6Awt=T', 'j%77t=T&jwt=T', '%6a%77%74=T', 'jwt=T&jwt=U', 'jwt&jwt=T', '?jwt=T']
for (const spelling of spellings) {
  test(`an agent does not see a token in the spelling ${spelling}`, async () => {
    const seen: (string | undefined)[] = []
    const agent = server.host.agentOf(id as SessionId)
    agent.operate = (request, response) => {
      seen.push(request.url)
      response.end('{}')
    }

    const query = spelling.replaceAll('T', token)
    const { status } = await fetch(`${server.url}/s/${id}/fs/file_info?${query}&path=/tmp`)

    // Whether or not it counts as the token, nothing that contains it is forwarded.
    assert.ok(status === 200 || status === 401, `${status}`)
    assert.deepEqual(seen, status === 200 ? ['/operations/fs/file_info?path=/tmp'] : [])
  })
}

/** Returns the response headers of a handshake. */
async function handshake(path: string, headers: readonly string[] = []): Promise<string> {
  const socket = connect(server.port, '127.0.0.1')
  const key = headers.some((line) => line.startsWith('sec-websocket-key'))
    ? []
    : ['sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==']
  const lines = [
    `GET ${path} HTTP/1.1`,
    'host: berth',
    'connection: Upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
  ]
  socket.write(`${[...lines, ...key, ...headers].join('\r\n')}\r\n\r\n`)
  const [data] = await once(socket, 'data')
  if (!String(data).includes('\r\n\r\n')) return text(socket)
  socket.destroy()
  return String(data)
}
