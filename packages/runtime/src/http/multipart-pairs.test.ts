import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import type { Part } from './multipart.ts'
import { parseFieldPath } from './multipart.ts'
import { type PairOptions, pairParts } from './multipart-pairs.ts'

type Written = readonly [field: string, value: string]

async function* partsOf(written: readonly Written[]): AsyncGenerator<Part> {
  for (const [field, value] of written) {
    const path = parseFieldPath(field)
    if (path.at(-1) === 'file') yield { kind: 'file', field, path, content: Readable.from([Buffer.from(value)]) }
    else yield { kind: 'text', field, path, text: value }
  }
}

async function pair(written: readonly Written[], options: Partial<PairOptions> = {}): Promise<string[]> {
  const temporaryFolder = await mkdtemp(join(tmpdir(), 'berth-pairs-'))
  try {
    const pairs: string[] = []
    const all = { list: 'files', file: 'file', text: 'path', maxPairs: 3, temporaryFolder, ...options }
    for await (const { text: path, content } of pairParts(partsOf(written), all)) {
      pairs.push(`${path}=${await text(content)}`)
    }
    assert.deepEqual(await readdir(temporaryFolder), [])
    return pairs
  } finally {
    assert.deepEqual(await readdir(temporaryFolder), [], 'a file stayed behind')
    await rm(temporaryFolder, { recursive: true })
  }
}

for (const [spelling, zero, one] of [
  ['TypeScript', 'files[0]', 'files[1]'],
  ['newer Go', 'files.0.', 'files.1.'],
  ['brackets and dots', 'files[0].', 'files[1].'],
  ['indexes with gaps', 'files[7]', 'files[3]'],
  ['Python, in order', 'files[]', 'files[]'],
  ['older Go, in order', 'files.', 'files.'],
  ['bare pairs, in order', '', ''],
] as const) {
  const field = (place: string, member: string) =>
    place === '' || place.endsWith('.') ? `${place}${member}` : `${place}[${member}]`
  const [path0, file0, path1, file1]: Written[] = [
    [field(zero, 'path'), 'a'],
    [field(zero, 'file'), '0'],
    [field(one, 'path'), 'b'],
    [field(one, 'file'), '1'],
  ] as [Written, Written, Written, Written]

  test(`pairs ${spelling} in any order`, async () => {
    const orders = [
      [path0, file0, path1, file1],
      [file0, path0, file1, path1],
      [path0, path1, file0, file1],
      [file0, file1, path0, path1],
      [file0, path0, path1, file1],
    ]

    for (const order of orders) {
      const pairs = await pair(order as Written[], { mayBeBare: true })
      assert.deepEqual(pairs.sort(), ['a=0', 'b=1'])
    }
  })
}

for (const [what, written, message] of [
  ['no part at all', [], /^files: must have at least 1 item/],
  ['a file without its text', [['files[2][file]', 'x']], /^files\[2\]: its path is missing/],
  ['a text without its file', [['files[2][path]', 'x']], /^files\[2\]: its file is missing/],
  [
    'a text that comes twice',
    [
      ['files[2][path]', 'x'],
      ['files[2][path]', 'y'],
    ],
    /^files\[2\]\[path\]: must be given once/,
  ],
  [
    'a file that comes twice',
    [
      ['files[0][path]', 'a'],
      ['files[0][file]', 'x'],
      ['files[0][file]', 'y'],
    ],
    /^files\[0\]\[file\]: must be given once/,
  ],
  [
    'too many pairs',
    ['0', '1', '2', '3'].map((index) => [`files[${index}][path]`, 'x']),
    /^files: must have at most 3/,
  ],
] as [string, Written[], RegExp][]) {
  test(`rejects ${what}`, async () => {
    await assert.rejects(pair(written), { code: 'bad_request', message })
  })
}

test('ignores parts that do not belong to the request', async () => {
  const strange: Written[] = [
    ['files[0][mode]', 'x'],
    ['other[0][path]', 'x'],
    ['files[x][path]', 'x'],
    ['path', 'a'],
    ['other[file]', 'x'],
  ]

  const pairs = await pair([...strange, ['files[0][path]', 'a'], ...strange, ['files[0][file]', '0'], ...strange])

  assert.deepEqual(pairs, ['a=0'])
})

test('leaves nothing behind when its reader stops', async () => {
  const temporaryFolder = await mkdtemp(join(tmpdir(), 'berth-pairs-'))
  const parts = partsOf([
    ['files[0][file]', 'x'],
    ['files[1][file]', 'y'],
    ['files[0][path]', 'a'],
  ])
  const pairs = pairParts(parts, { list: 'files', file: 'file', text: 'path', maxPairs: 3, temporaryFolder })

  await assert.rejects(async () => {
    for await (const _ of pairs) throw new Error('no more')
  }, /no more/)

  assert.deepEqual(await readdir(temporaryFolder), [])
  await rm(temporaryFolder, { recursive: true })
})
