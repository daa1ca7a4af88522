import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import test from 'node:test'
import { type MultipartOptions, parseFieldPath, readMultipart } from './multipart.ts'

const headers = { 'content-type': 'multipart/form-data; boundary=b' }
const limits = { maxParts: 10, maxFileBytes: 100_000 }
const isFile = (path: readonly string[]) => path.at(-1) === 'file'

/** Creates a body from text, in pieces of one byte when `inBytes` is set. */
function bodyOf(text: string, { inBytes = false } = {}): Readable {
  const bytes = Buffer.from(text)
  return Readable.from(inBytes ? [...bytes].map((byte) => Buffer.of(byte)) : [bytes], { objectMode: false })
}

const textPart = (name: string, value: string) =>
  `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
const filePart = (name: string, value: string) =>
  `--b\r\ncontent-disposition: form-data; name="${name}"; filename="x"\r\ncontent-type: text/plain\r\n\r\n${value}\r\n`
const end = '--b--\r\n'

async function readAll(body: Readable, options: Partial<MultipartOptions> = {}): Promise<unknown[]> {
  const read: unknown[] = []
  for await (const part of readMultipart(body, { headers, isKnown: () => true, isFile, ...limits, ...options })) {
    read.push(part.kind === 'text' ? [part.field, part.text] : [part.field, await buffer(part.content)])
  }
  return read
}

for (const [field, path] of [
  ['file', ['file']],
  ['files[0][file]', ['files', '0', 'file']],
  ['files[][file]', ['files', '', 'file']],
  ['files.0.file', ['files', '0', 'file']],
  ['files[0].file', ['files', '0', 'file']],
  ['files.file', ['files', 'file']],
  ['env_vars[A.B]', ['env_vars', 'A.B']],
] as const) {
  test(`parses ${field}`, () => {
    assert.deepEqual(parseFieldPath(field), path)
  })
}

for (const inBytes of [false, true]) {
  test(`yields texts and files in their order, when they arrive ${inBytes ? 'byte by byte' : 'together'}`, async () => {
    const body = filePart('files[1][file]', 'one\r\n--\r\n') + textPart('files[1][name]', 'ü') + filePart('file', '')

    const parts = await readAll(bodyOf(body + end, { inBytes }))

    assert.deepEqual(parts, [
      ['files[1][file]', Buffer.from('one\r\n--\r\n')],
      ['files[1][name]', 'ü'],
      ['file', Buffer.alloc(0)],
    ])
  })
}

test('reads what FormData writes', async () => {
  const form = new FormData()
  form.set('file', new Blob([Buffer.alloc(90_000, 'x')]), 'a.zip')
  form.set('name', 'a')
  const sent = new Response(form)

  const parts = await readAll(Readable.from(Buffer.from(await sent.arrayBuffer())), {
    headers: { 'content-type': sent.headers.get('content-type') ?? '' },
  })

  assert.deepEqual(parts, [
    ['file', Buffer.alloc(90_000, 'x')],
    ['name', 'a'],
  ])
})

test('continues after a file that is not read', async () => {
  const fields: string[] = []
  const body = bodyOf(filePart('file', 'x'.repeat(90_000)) + textPart('name', 'a') + end)

  for await (const part of readMultipart(body, { headers, isKnown: () => true, isFile, ...limits }))
    fields.push(part.field)

  assert.deepEqual(fields, ['file', 'name'])
})

for (const [what, body, code] of [
  ['a body that ends within a file', filePart('file', 'xx'), 'bad_request'],
  ['a body that ends within a head', '--b\r\ncontent-disposition: form', 'bad_request'],
  ['a body that ends within a text', textPart('name', 'a').slice(0, -2), 'bad_request'],
  ['an empty body', '', 'bad_request'],
  ['a body that is something else', '{"name":"a"}', 'bad_request'],
  ['a part without a name', `--b\r\ncontent-disposition: form-data\r\n\r\na\r\n${end}`, 'bad_request'],
  ['a NUL character in a text', textPart('name', 'a\0b') + end, 'bad_request'],
  ['too many parts', textPart('name', 'a').repeat(11) + end, 'bad_request'],
  ['a text that is too long', textPart('name', 'a'.repeat(65_537)) + end, 'part_too_large'],
  ['a file that is too long', filePart('file', 'a'.repeat(100_001)) + end, 'part_too_large'],
] as const) {
  test(`rejects ${what}`, async () => {
    await assert.rejects(readAll(bodyOf(body)), { name: 'BerthError', code })
    await assert.rejects(readAll(bodyOf(body, { inBytes: body.length < 500 })), { name: 'BerthError', code })
  })
}

for (const [contentType, code] of [
  [undefined, 'unsupported_media_type'],
  ['application/json', 'unsupported_media_type'],
  ['multipart/mixed; boundary=b', 'unsupported_media_type'],
  ['multipart/form-data', 'bad_request'],
  [`multipart/form-data; boundary=${'b'.repeat(5000)}`, 'bad_request'],
] as const) {
  test(`rejects the content type ${contentType?.slice(0, 40)}`, async () => {
    const headers: IncomingHttpHeaders = contentType === undefined ? {} : { 'content-type': contentType }

    await assert.rejects(readAll(bodyOf(textPart('name', 'a') + end), { headers }), { name: 'BerthError', code })
  })
}

test('uses the boundary at the start of the body if the header has another one', async () => {
  const other = { 'content-type': 'multipart/form-data; boundary=----formdata-undici-012345678901' }

  assert.deepEqual(await readAll(bodyOf(textPart('name', 'a') + end), { headers: other }), [['name', 'a']])
})

test('rejects a client that stalls', async () => {
  const body = new PassThrough()
  body.write(filePart('file', 'x').slice(0, -2))

  await assert.rejects(readAll(body, { stallMilliseconds: 20 }), { code: 'request_timeout' })
})

test('fails the file of a client that disconnects halfway', async () => {
  const left = Promise.withResolvers<unknown>()
  const arrived = Promise.withResolvers<void>()
  const server = createServer(async (message) => {
    const parts = readMultipart(message, { headers: message.headers, isKnown: () => true, isFile, ...limits })
    try {
      for await (const part of parts) if (part.kind === 'file') for await (const _ of part.content) arrived.resolve()
      left.resolve('read to its end')
    } catch (error) {
      left.resolve((error as { code: string }).code)
    }
  })
  await using _closing = { [Symbol.asyncDispose]: async () => void server.close() }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const client = request({ port, method: 'POST', headers })
  client.on('error', () => {})

  client.write(filePart('file', 'half of it').slice(0, -2))
  await arrived.promise
  client.destroy()

  assert.equal(await left.promise, 'bad_request')
})

test('lets a client that sends too much finish and read the response', async () => {
  const server = createServer((message, response) => {
    readAll(message, { headers: message.headers }).catch(({ status }) => response.writeHead(status).end())
  })
  await using _closing = { [Symbol.asyncDispose]: async () => void server.close() }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  const status = await new Promise((resolve, reject) => {
    const client = request({ port, method: 'POST', headers, agent: false }, (answer: IncomingMessage) => {
      resolve(answer.resume().statusCode)
    })
    client.on('error', reject)
    client.end(filePart('file', 'x'.repeat(5_000_000)) + end)
  })

  assert.equal(status, 413)
})

test('discards unknown parts of any kind and size, and counts them separately', async () => {
  const isKnown = ([name]: readonly string[]) => name !== 'new'
  const unknown = textPart('new', 'x'.repeat(90_000)) + filePart('new[file]', 'y') + textPart('new', '\0')

  const body = unknown.repeat(5) + textPart('a', '1') + unknown + filePart('file', '2') + unknown
  const parts = await readAll(bodyOf(body + end), { isKnown, maxParts: 2 })

  assert.deepEqual(parts, [
    ['a', '1'],
    ['file', Buffer.from('2')],
  ])
  await assert.rejects(readAll(bodyOf(textPart('new', 'x'.repeat(100_001)) + end), { isKnown }), {
    code: 'part_too_large',
  })
  await assert.rejects(readAll(bodyOf(textPart('new', 'x').repeat(200) + end), { isKnown }), /at most 110 parts/)
  await assert.rejects(readAll(bodyOf(textPart('a', 'x').repeat(3) + end), { isKnown, maxParts: 2 }), /at most 2 parts/)
})
