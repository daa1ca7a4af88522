import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AptProgress } from './apt-progress.ts'

function read(lines: readonly string[]) {
  const told: string[] = []
  const progress = new AptProgress((line) => told.push(line))
  const isProgress = lines.map((line) => progress.read(line))
  return { told, isProgress }
}

test('reports each fifth of downloading and installing once', () => {
  const { told } = read([
    'dlstatus:1:10.5:Retrieving file 1 of 3',
    'dlstatus:2:41.2:Retrieving file 2 of 3',
    'dlstatus:2:43:Retrieving file 2 of 3',
    'dlstatus:3:100:Retrieving file 3 of 3',
    'pmstatus:dpkg-exec:0:Running dpkg',
    'pmstatus:xclip:50:Installing xclip (amd64)',
    'pmstatus:libc6:amd64:100:Installed libc6 (amd64)',
  ])

  assert.deepEqual(told, ['40 % downloaded', '100 % downloaded', '40 % installed', '100 % installed'])
})

test('leaves every other line to the log', () => {
  const { told, isProgress } = read(['Setting up xclip (0.13-2) ...', 'E: Unable to locate package chromium', ''])

  assert.deepEqual(told, [])
  assert.deepEqual(isProgress, [false, false, false])
})
