import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Leftovers } from './leftovers.ts'

/** Code that is clean or leaves something running; each function returns how to stop it. */
const codes: Readonly<Record<string, readonly [isClean: boolean, run: () => unknown]>> = {
  'does nothing': [true, () => {}],
  'waits for a timer': [true, () => delay(5)],
  'reads a file without waiting for it': [true, () => void readFile('/etc/hosts').catch(() => {})],
  'leaves a timer': [
    false,
    () => {
      const timer = setTimeout(() => {}, 60_000).unref()
      return () => clearTimeout(timer)
    },
  ],
  'leaves an interval that keeps nothing alive': [
    false,
    () => {
      const timer = setInterval(() => {}, 20).unref()
      return () => clearInterval(timer)
    },
  ],
  'goes on in a promise': [
    false,
    () => {
      let isOver = false
      const goOn = async () => {
        while (!isOver) await readFile('/etc/hosts')
      }
      goOn().catch(() => {})
      return () => {
        isOver = true
      }
    },
  ],
  'leaves a program': [
    false,
    () => {
      const child = spawn('sleep', ['60'], { stdio: 'ignore' })
      child.unref()
      return () => child.kill()
    },
  ],
  'leaves a thread': [
    false,
    () => {
      const worker = new Worker('setInterval(() => {}, 50)', { eval: true })
      worker.unref()
      return () => worker.terminate()
    },
  ],
  'leaves a listener of the process': [
    false,
    () => {
      const listener = () => {}
      process.on('warning', listener)
      return () => process.off('warning', listener)
    },
  ],
}

for (const [what, [isClean, run]] of Object.entries(codes)) {
  test(`code that ${what} ${isClean ? 'has ended' : 'continues'}`, async () => {
    const leftovers = new Leftovers()
    leftovers.expectNone()
    leftovers.beginCounting()

    const end = await run()
    const areNone = await leftovers.areNone()

    if (typeof end === 'function') await end()
    assert.equal(areNone, isClean)
  })
}
