import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { isAlive, parseProcess, readProcess, sendSignal, waitForEnd } from './host-process.ts'

test('reads a process whose name looks like the fields after it', () => {
  const fields = Array.from({ length: 30 }, (_, index) => index + 5).join(' ')

  const found = parseProcess(`42 (a) S 1 (b) T 7 ${fields}`)

  assert.deepEqual(found, { pid: 42, parent: 7, startTime: '22', isZombie: false, isStopped: true })
})

test('distinguishes processes with the same pid', async () => {
  const own = await readProcess(process.pid)
  assert.ok(own)

  assert.equal(await isAlive(own), true)
  assert.equal(await isAlive({ ...own, startTime: '1' }), false)
})

test('waits until a killed process has ended, even if it ended before', async () => {
  const child = spawn('/bin/sleep', ['1000'])
  const exited = once(child, 'exit')
  const found = await readProcess(child.pid ?? 0)
  assert.ok(found)

  sendSignal(found.pid, 'SIGKILL')
  await waitForEnd([found])

  assert.equal(await isAlive(found), false)
  await exited
  sendSignal(found.pid, 'SIGKILL')
})
