import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import Kernel from '@onkernel/sdk'
import { TestServer } from '../../testing/server-test.ts'

interface SampledOperation {
  readonly operationId: string
  readonly 'x-codeSamples'?: readonly { readonly lang: string; readonly source: string }[]
}

const server = await TestServer.open()
after(() => server.close())

async function sampledOperations() {
  const document = (await (await fetch(`${server.url}/docs/openapi.json`)).json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, SampledOperation>>>>
  }
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ path, method, operation })),
  )
}

/** Runs a sample and returns the request that the SDK makes of it. */
async function requestOf(source: string): Promise<string> {
  let request = ''
  class RecordingKernel extends Kernel {
    constructor() {
      super({
        apiKey: 'sk_test',
        baseURL: 'http://berth.test',
        maxRetries: 0,
        fetch: async (url, init) => {
          request = `${init?.method?.toLowerCase()} ${decodeURIComponent(new URL(String(url)).pathname)}`
          return new Response('{}', { headers: { 'content-type': 'application/json' } })
        },
      })
    }
  }
  const program = source.replaceAll(/^import .*$/gm, '')
  const run = new Function('Kernel', 'createReadStream', `return (async () => {${program}})()`)
  await run(RecordingKernel, () => new File(['content'], 'file'))
  return request
}

test('each sample in TypeScript calls the operation that it is shown at', async () => {
  const samples = (await sampledOperations()).flatMap(({ path, method, operation }) => {
    const sample = operation['x-codeSamples']?.find(({ lang }) => lang === 'TypeScript')
    return sample ? [{ name: `${method} ${path.replaceAll(/[{}]/g, '')}`, source: sample.source }] : []
  })

  assert.ok(samples.length > 100)
  for (const { name, source } of samples) assert.equal(await requestOf(source), name, source)
})

test('an operation of the SDKs has samples in three languages', async () => {
  const operations = await sampledOperations()
  const create = operations.find(({ operation }) => operation.operationId === 'startReplay')
  const stop = operations.find(({ operation }) => operation.operationId === 'stopReplay')
  const sourceOf = (lang: string) =>
    stop?.operation['x-codeSamples']?.find((sample) => sample.lang === lang)?.source ?? ''

  assert.deepEqual(
    create?.operation['x-codeSamples']?.map(({ lang }) => lang),
    ['TypeScript', 'Python', 'Go'],
  )
  assert.match(
    sourceOf('Python'),
    /client\.browsers\.replays\.stop\(\n {4}"replay_id",\n {4}id_or_name="id_or_name",\n\)/,
  )
  assert.match(sourceOf('Go'), /client\.Browsers\.Replays\.Stop\(ctx, "replay_id", kernel\.BrowserReplayStopParams\{/)
})

test('guides are rendered with working links, and nothing in them is run', async () => {
  const index = await (await fetch(`${server.url}/docs/guides`)).text()
  const names = [...index.matchAll(/href="\/docs\/guides\/([\w-]+)"/g)].map(([, name]) => name ?? '')
  const pages = new Map(
    await Promise.all(
      names.map(async (name) => [name, await (await fetch(`${server.url}/docs/guides/${name}`)).text()] as const),
    ),
  )

  assert.ok(names.includes('sessions') && names.includes('dashboard'))
  assert.match(pages.get('dashboard') ?? '', /<a href="\/docs\/pictures\/session-light\.png"/)
  for (const [name, html] of pages) {
    assert.equal(html.match(/<script/g)?.length, 2, name)
    for (const [, address = ''] of html.matchAll(/(?:href|src)="(\/docs\/[^"]+)"/g)) {
      const [path = '', anchor] = address.split('#')
      const target = path.startsWith('/docs/guides/') ? pages.get(path.slice('/docs/guides/'.length)) : undefined
      if (target === undefined) assert.equal((await fetch(server.url + path)).status, 200, `${address} in ${name}`)
      else if (anchor !== undefined) assert.ok(target.includes(`id="${anchor}"`), `${address} in ${name}`)
    }
  }
  for (const path of [
    '/docs/guides/other',
    '/docs/pictures/..%2fopenapi.json',
    '/docs/assets/scalar/..%2fpackage.json',
  ]) {
    assert.equal((await fetch(server.url + path)).status, 404, path)
  }
})
