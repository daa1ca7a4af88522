import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLfsPointer } from './git-lfs-pointers.ts'

const oid = `oid sha256:${'0a'.repeat(32)}`
const version = 'version https://git-lfs.github.com/spec/v1'

const contents: readonly (readonly [what: string, content: string, isPointer: boolean])[] = [
  ['a pointer', `${version}\n${oid}\nsize 12\n`, true],
  ['one of a checkout on Windows', `${version}\r\n${oid}\r\nsize 12\r\n`, true],
  ['one with an extension', `${version}\next-0-foo sha256:${'0a'.repeat(32)}\n${oid}\nsize 12\n`, true],
  ['one of an old version', `version https://hawser.github.com/spec/v1\n${oid}\nsize 12\n`, true],
  ['a text about pointers', `A pointer begins with\n${version}\n${oid}\nsize 12\n`, false],
  ['a text that begins like one', `${version}\nis the first line of a pointer.\n`, false],
  ['nothing', '', false],
]
for (const [what, content, isPointer] of contents) {
  test(`${what} is ${isPointer ? '' : 'not '}a Git LFS pointer`, () => {
    assert.equal(isLfsPointer(Buffer.from(content)), isPointer)
  })
}
